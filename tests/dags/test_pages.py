"""Who sees which page of Airflow's UI, and what stands there."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sluice.orchestration import named
from sluice.report import Difference, Verification, history
from sluice.report.model import RunReport, StepReport
from sluice.report.store import report_path, write_report
from sluice.storage import Paths

from tests.airflow_service import write_pipeline
from tests.stored_reports import store_history, store_idle_run, store_refused, store_run

RUN_ID = "manual__2026-01-01T00:00:00+00:00"
REPORT = "/sluice/report"


@pytest.fixture(scope="module")
def site(metadata_database, tmp_path_factory):
    """Airflow's whole web application over two pipelines, `visits` and `secret`, and one run of
    each that has no report."""
    from airflow.api_fastapi.app import cached_app, purge_cached_app
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from fastapi.testclient import TestClient
    from sluice.storage import PROJECT

    folder = tmp_path_factory.mktemp("site")
    for name in ("visits", "secret"):
        (folder / "pipelines").mkdir(exist_ok=True)
        write_pipeline(folder, name)
    verified = folder / "pipelines" / "visits.yaml"
    verified.write_text("verify: '@weekly'\n" + verified.read_text())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLUICE_PIPELINES", str(folder / "pipelines"))
        patch.setenv("SLUICE_ROOT", str(folder / "root"))
        DagBundlesManager().sync_bundles_to_db()
        sync_bag_to_db(DagBag(str(PROJECT / "dags")), "dags-folder", None)
        purge_cached_app()
        with TestClient(cached_app(), base_url="http://testserver") as client:
            yield client
        purge_cached_app()


def login(site, user: str) -> dict[str, str]:
    """The headers of a logged-in user."""
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    answer = site.post(
        "/auth/token", json={"username": user, "password": SimpleAuthManager.get_passwords()[user]}
    )
    assert answer.status_code == 201, answer.text
    return {"Authorization": f"Bearer {answer.json()['access_token']}"}


@pytest.fixture
def viewer(site):
    """A user who may look at everything and change nothing."""
    return login(site, "viewer")


@pytest.fixture
def not_secret(monkeypatch):
    """The simple auth manager lets every user see every DAG, so its answer for `secret` is
    replaced; everything around the answer is real."""
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    real = SimpleAuthManager.is_authorized_dag

    def answer(self, *, method, user, access_entity=None, details=None):
        hidden = details is not None and details.id in ("secret", "secret_backfill")
        return not hidden and real(
            self, method=method, user=user, access_entity=access_entity, details=details
        )

    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", answer)


def store(pipeline: str, run_id: str = RUN_ID, **changes) -> RunReport:
    """Write a report with one failing rule."""
    return store_run(Paths.under(None, pipeline), run_id, datetime.now(UTC), **changes)


@pytest.fixture
def no_reports(site):
    """Start and end without reports."""
    import os
    import shutil

    shutil.rmtree(os.environ["SLUICE_ROOT"], ignore_errors=True)
    yield
    shutil.rmtree(os.environ["SLUICE_ROOT"], ignore_errors=True)


@pytest.mark.parametrize(
    "path",
    [
        "/sluice/",
        f"{REPORT}?dag_id=visits&run_id=x",
        f"{REPORT}?dag_id=nowhere&run_id=x",
        "/sluice/history?dag_id=visits",
        "/sluice/quarantine?dag_id=visits",
        "/sluice/open?dag_id=visits",
        "/sluice/anything",
    ],
)
def test_an_anonymous_visitor_sees_nothing(site, path):
    answer = site.get(path)
    assert answer.status_code in ((401,) if "anything" not in path else (401, 404))
    assert "visits" not in answer.text


@pytest.mark.parametrize("path", ["/sluice/docs", "/sluice/redoc", "/sluice/openapi.json"])
def test_there_are_no_pages_about_the_pages(site, viewer, path):
    assert site.get(path, headers=viewer).status_code == 404


def test_a_wrong_token_is_refused(site):
    assert site.get("/sluice/", headers={"Authorization": "Bearer nonsense"}).status_code in (
        401,
        403,
    )


def test_a_viewer_sees_every_pipeline_with_balance_line_failing_rule_and_link(
    site, viewer, no_reports
):
    store("visits")
    page = site.get("/sluice/", headers=viewer)
    assert page.status_code == 200
    assert "10 read = 9 written + 1 quarantined + 0 duplicate + 0 late + 0 filtered" in page.text
    assert "seconds_not_negative failed" in page.text
    assert "report?dag_id=visits&amp;run_id=manual__2026-01-01T00%3A00%3A00%2B00%3A00" in page.text
    assert "No run yet. Unpause the DAG <code>secret</code>" in page.text
    assert "visits_backfill" not in page.text


def test_the_link_on_the_overview_leads_to_the_report(site, viewer, no_reports):
    store("visits")
    href = (
        site.get("/sluice/", headers=viewer)
        .text.split('<a href="')[1]
        .split('"')[0]
        .replace("&amp;", "&")
    )
    answer = site.get(f"/sluice/{href}", headers=viewer)
    assert answer.status_code == 200
    assert "seconds_not_negative" in answer.text


def test_the_report_is_the_file_the_run_wrote_under_links(site, viewer, no_reports):
    store("visits")
    answer = site.get(REPORT, params={"dag_id": "visits", "run_id": RUN_ID}, headers=viewer)
    links = re.search(r"(?s)<style>\.ways.*?</nav>\n", answer.text)[0]
    assert set(re.findall('href="([a-z.]+)', links)) == {".", "history", "quarantine", "open"}
    assert (
        answer.text.replace(links, "")
        == report_path(Paths.under(None, "visits").reports(), RUN_ID, "html").read_text()
    )


def test_a_report_without_its_page_is_drawn_again(site, viewer, no_reports):
    store("visits")
    report_path(Paths.under(None, "visits").reports(), RUN_ID, "html").unlink()
    answer = site.get(REPORT, params={"dag_id": "visits", "run_id": RUN_ID}, headers=viewer)
    assert answer.status_code == 200
    assert "seconds_not_negative" in answer.text


def test_a_backfill_shows_the_report_of_its_own_run(site, viewer, no_reports):
    store("visits", "backfill__1", kind="backfill", window="a .. b")
    answer = site.get(
        REPORT, params={"dag_id": "visits_backfill", "run_id": "backfill__1"}, headers=viewer
    )
    assert answer.status_code == 200
    assert (
        "dag_id=visits_backfill&amp;run_id=backfill__1" in site.get("/sluice/", headers=viewer).text
    )


def store_verification(*found: Verification, **changes) -> None:
    """The report of a run that verified `visits`."""
    step = StepReport(name="visits", target="t", quarantine="q", verified=list(found))
    told = {"run_id": RUN_ID, "kind": "verification", "status": "done", "steps": [step]}
    now = datetime(2026, 1, 4, tzinfo=UTC)
    report = RunReport(pipeline="visits", started=now, ended=now, **(told | changes))
    write_report(report, Paths.under(None, "visits").verdicts())


def test_a_verification_has_a_report_of_its_own_beside_that_of_the_run(site, viewer, no_reports):
    store("visits")
    store_verification(Verification(step="visits", rows=1234, read="1,240 read = ..."))
    overview = site.get("/sluice/", headers=viewer).text
    assert "10 read = 9 written" in overview
    href = re.search(r'<a class="good" href="(report[^"]+)">verified</a> 2026-01-04', overview)[1]
    page = site.get(f"/sluice/{href.replace('&amp;', '&')}", headers=viewer)
    assert page.status_code == 200 and "What was compared" in page.text
    assert "1,234 rows, equal to what its input gives once more" in page.text
    tab = site.get(REPORT, params={"dag_id": "visits_verify", "run_id": RUN_ID}, headers=viewer)
    assert "What was compared" in tab.text
    run = site.get(REPORT, params={"dag_id": "visits", "run_id": RUN_ID}, headers=viewer).text
    assert "What was compared" not in run and "seconds_not_negative" in run
    assert "verification" not in site.get("/sluice/history?dag_id=visits", headers=viewer).text


def test_a_table_that_differs_is_seen_on_the_overview_and_named_in_the_report(
    site, viewer, no_reports
):
    store("visits")
    lost = Difference(group="id=<b>7</b>", missing=1, surplus=0)
    off = Verification(step="visits", rows=9, missing=1, groups=1, samples=[lost])
    store_verification(off, status="failed", exit_code=6, error="visits DIFFERS from it")
    overview = site.get("/sluice/", headers=viewer).text
    assert re.search(r'<a class="bad" href="report[^"]+">verification failed</a>', overview)
    asked = {"dag_id": "visits", "run_id": RUN_ID, "kind": "verification"}
    page = site.get(REPORT, params=asked, headers=viewer).text
    assert "visits DIFFERS from it" in page and "A table does not hold what its inputs" in page
    assert "id=&lt;b&gt;7&lt;/b&gt;" in page and "1 missing, 0 too many" in page


@pytest.mark.parametrize("dag_id", ["secret", "secret_backfill"])
def test_a_user_without_the_dag_gets_403_and_no_word_of_it(
    site, viewer, not_secret, no_reports, dag_id
):
    store("secret", rule="told_to_nobody")
    answer = site.get(REPORT, params={"dag_id": dag_id, "run_id": RUN_ID}, headers=viewer)
    assert answer.status_code == 403
    assert "told_to_nobody" not in answer.text
    overview = site.get("/sluice/", headers=viewer)
    assert overview.status_code == 200
    assert "secret" not in overview.text
    assert "visits" in overview.text


@pytest.mark.parametrize(
    "query",
    [
        f"dag_id=visits&dag_id=secret&run_id={RUN_ID}",
        f"dag_id=secret&dag_id=visits&run_id={RUN_ID}",
    ],
)
def test_naming_two_dags_does_not_smuggle_one_past_the_check(
    site, viewer, not_secret, no_reports, query
):
    store("secret", rule="told_to_nobody")
    assert (
        "told_to_nobody"
        not in site.get(f"{REPORT}?{query.replace('+', '%2B')}", headers=viewer).text
    )


@pytest.mark.parametrize(
    "run_id",
    [
        "../secret/manual__1",
        "..%2Fsecret%2Fmanual__1",
        "../../../../etc/passwd",
        "/etc/passwd",
        "..",
        ".",
        "manual__1\x00",
        "a" * 251,
    ],
)
def test_a_run_id_cannot_leave_the_folder_of_its_pipeline(site, viewer, no_reports, run_id):
    store("visits", "other")
    store("secret", "manual__1", rule="told_to_nobody")
    answer = site.get(REPORT, params={"dag_id": "visits", "run_id": run_id}, headers=viewer)
    assert answer.status_code in (404, 422)
    assert "told_to_nobody" not in answer.text
    assert "root:" not in answer.text


@pytest.mark.parametrize("dag_id", ["../secret", "visits/../secret", "..", "", "a" * 251])
def test_a_dag_id_that_is_no_pipeline_finds_nothing(site, viewer, no_reports, dag_id):
    store("secret", rule="told_to_nobody")
    answer = site.get(REPORT, params={"dag_id": dag_id, "run_id": RUN_ID}, headers=viewer)
    assert answer.status_code in (403, 404, 422)
    assert "told_to_nobody" not in answer.text


def test_every_value_is_escaped(site, viewer, no_reports):
    hostile = "<script>alert(1)</script>"
    store("visits", rule=hostile, error=hostile, status="failed")
    pages = [
        site.get("/sluice/", headers=viewer),
        site.get(REPORT, params={"dag_id": "visits", "run_id": RUN_ID}, headers=viewer),
        site.get(REPORT, params={"dag_id": "visits", "run_id": hostile}, headers=viewer),
    ]
    assert all("<script" not in page.text for page in pages)
    assert "&lt;script&gt;" in pages[0].text


def test_a_page_may_load_nothing_and_run_nothing(site, viewer, no_reports):
    store("visits")
    for path in (
        "/sluice/",
        f"{REPORT}?dag_id=visits&run_id=none",
        f"{REPORT}?dag_id=visits&run_id={RUN_ID.replace('+', '%2B')}",
    ):
        answer = site.get(path, headers=viewer)
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "script-src" not in policy
        assert "http://" not in answer.text.replace("http://www.w3.org/", "")
        assert "https://" not in answer.text


def test_a_run_without_a_report_says_why_and_what_to_do(site, viewer, no_reports):
    def page(run_id):
        return site.get(REPORT, params={"dag_id": "visits", "run_id": run_id}, headers=viewer)

    assert "Airflow knows no such run" in page("never").text
    created = site.post(
        "/api/v2/dags/visits/dagRuns",
        json={"dag_run_id": "queued_one", "logical_date": None},
        headers=login(site, "admin"),
    )
    assert created.status_code == 200, created.text
    assert "has not reported yet" in page("queued_one").text
    for state, sentence in (
        ("success", "Nothing was new"),
        ("failed", "Read the log of the task that failed"),
    ):
        site.patch(
            "/api/v2/dags/visits/dagRuns/queued_one",
            json={"state": state},
            headers=login(site, "admin"),
        )
        assert sentence in page("queued_one").text


def test_no_visible_pipeline_says_how_to_write_one(site, viewer, no_reports, monkeypatch):
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", lambda self, **_: False)
    assert "sluice new NAME" in site.get("/sluice/", headers=viewer).text


def test_airflow_offers_the_navigation_entry_and_the_tab(site, viewer):
    plugins = site.get("/api/v2/plugins", headers=viewer).json()["plugins"]
    views = next(plugin for plugin in plugins if plugin["name"] == "sluice")["external_views"]
    assert {(view["name"], view["destination"]) for view in views} == {
        ("Quality", "nav"),
        ("Quality report", "dag_run"),
    }
    assert site.get("/api/v2/plugins/importErrors", headers=viewer).json()["import_errors"] == []


@pytest.fixture
def page(site, viewer):
    """page(path, **query) is what a viewer is answered below `/sluice/`."""
    return lambda path, **query: site.get(f"/sluice/{path}", params=query, headers=viewer)


def now() -> datetime:
    """This moment."""
    return datetime.now(UTC)


@pytest.mark.parametrize("path", ["history", "quarantine", "open"])
@pytest.mark.parametrize("dag_id", ["secret", "secret_backfill"])
def test_no_page_of_a_dag_is_shown_without_it(page, not_secret, no_reports, path, dag_id):
    store("secret", rule="told_to_nobody")
    store_refused(Paths.under(None, "secret"), "visits", [("told_to_nobody", ["null_key"], None)])
    answer = page(path, dag_id=dag_id)
    assert answer.status_code == 403
    assert "told_to_nobody" not in answer.text


@pytest.mark.parametrize("path", ["history", "quarantine", "open", "report"])
def test_a_page_of_a_dag_asks_for_the_dag(page, path):
    assert page(path).status_code in (403, 422)


@pytest.mark.parametrize("path", ["history", "quarantine"])
@pytest.mark.parametrize("dag_id", ["../secret", "..", "nowhere"])
def test_what_is_no_pipeline_has_no_history_and_no_quarantine(page, no_reports, path, dag_id):
    answer = page(path, dag_id=dag_id)
    assert answer.status_code in (403, 404)


def test_the_history_shows_thirty_runs_with_their_fates_and_failing_rules(page, no_reports):
    runs = store_history(Paths.under(None, "visits"), 40, now())
    text = page("history", dag_id="visits").text
    newest = next(run for run in reversed(runs) if run.status == "done")
    assert text.count("<tr") == 1 + 30
    assert f'role="img" aria-label="{newest.counts.line}"' in text
    assert 'class="fill-quarantined"' in text
    assert "report?dag_id=visits&amp;run_id=hour_0036#rule-visits-seconds_not_negative" in text
    assert "hour_0009" not in text


def test_the_history_shows_idle_runs_as_such(page, no_reports):
    paths = Paths.under(None, "visits")
    store("visits")
    for n in range(3):
        store_idle_run(paths, f"idle_{n}", now())
    text = page("history", dag_id="visits").text
    assert "3 idle runs since" in text
    assert text.count('<svg class="bar"') == 1


def test_the_history_reads_the_newest_reports_only_and_each_once(page, no_reports, monkeypatch):
    store_history(Paths.under(None, "visits"), 200, now())
    history._read_summary.cache_clear()
    read, read_bytes = [], Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path) or read_bytes(path))
    page("history", dag_id="visits")
    assert 30 <= len(read) <= 40
    page("history", dag_id="visits")
    page("")
    assert len(read) <= 40


def test_a_report_that_is_written_anew_is_read_anew(page, no_reports):
    store("visits", rule="the_old_one")
    assert "the_old_one failed" in page("history", dag_id="visits").text
    store("visits", rule="one_of_another_name")
    assert "one_of_another_name failed" in page("history", dag_id="visits").text


def test_an_idle_run_links_the_last_one_with_something_to_do(page, no_reports):
    store("visits", "worked")
    store_idle_run(Paths.under(None, "visits"), "idle", now())
    link = "report?dag_id=visits&amp;run_id=worked"
    overview = page("").text
    assert link in overview
    assert "seconds_not_negative failed" in overview
    report = page("report", dag_id="visits", run_id="idle").text
    assert f'<a href="{link}">The last run with something to do</a>' in report
    file = report_path(Paths.under(None, "visits").reports(), "idle", "html").read_text()
    assert '<a href="worked.html">The last run with something to do</a>' in file


@pytest.fixture
def silent_run(site):
    """silent_run(run_id, state) is a run of `visits` that Airflow ended just now without a
    report."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import delete, update

    made = []

    def end(run_id: str, state: str) -> None:
        body = {"dag_run_id": run_id, "logical_date": None}
        answer = site.post("/api/v2/dags/visits/dagRuns", json=body, headers=login(site, "admin"))
        assert answer.status_code == 200, answer.text
        made.append(run_id)
        with create_session() as session:
            of_it = update(DagRun).where(DagRun.run_id == run_id)
            session.execute(of_it.values(state=state, start_date=now()))

    yield end
    with create_session() as session:
        session.execute(delete(DagRun).where(DagRun.run_id.in_(made)))


def test_the_history_tells_of_runs_that_left_no_report(page, no_reports, silent_run):
    store("visits", "worked")
    for run_id, state in (("skipped_1", "success"), ("skipped_2", "success"), ("died", "failed")):
        silent_run(run_id, state)
    silent_run("goes_on", "running")
    silent_run("worked", "success")
    text = page("history", dag_id="visits").text
    assert "2 idle runs since" in text
    assert 'open?dag_id=visits&amp;run_id=died"' in text
    assert "goes_on" not in text
    assert text.count("<tr") == 1 + 3


def test_the_tab_of_a_skipped_run_links_the_last_one_with_something_to_do(
    page, no_reports, silent_run
):
    store("visits", "worked")
    silent_run("skipped", "success")
    text = page("report", dag_id="visits", run_id="skipped").text
    assert "Nothing was new" in text
    assert "report?dag_id=visits&amp;run_id=worked" in text


def test_a_run_without_rules_is_not_said_to_have_passed_them(page, no_reports):
    store("visits", steps=[])
    assert "none evaluated" in page("").text
    assert "passed" not in page("").text


def test_a_link_of_a_failing_rule_leads_to_the_rule_in_the_report(page, no_reports):
    store("visits", rule="a rule: 50 %")
    anchor = re.search('#(rule-visits-[^"]+)"', page("").text)[1]
    assert f'id="{anchor}"' in page("report", dag_id="visits", run_id=RUN_ID).text


def refuse(rows, name: str = "visits") -> str:
    """Write rows into the quarantine table of a pipeline's only step."""
    return store_refused(Paths.under(None, name), "visits", rows, RUN_ID)


def test_the_quarantine_shows_reasons_counts_and_rows(page, no_reports):
    refuse([('{"id": 1}', ["null_time"], None), ('{"id": 2}', ["null_time", "seconds"], "why")])
    text = page("quarantine", dag_id="visits").text
    assert "2 rows in quarantine" in text
    assert re.search(r'reason=null_time">null_time</a></th><td class="right">2</td>', text)
    assert re.search(r'reason=seconds">seconds</a></th><td class="right">1</td>', text)
    assert "{&#34;id&#34;: 1}" in text
    assert "report?dag_id=visits&amp;run_id=manual__2026" in text


def test_the_quarantine_can_be_asked_for_a_reason(page, no_reports):
    refuse([("first", ["it's odd"], None), ("second", ["other"], None)])
    text = page("quarantine", dag_id="visits", reason="it's odd").text
    assert "<code>first</code>" in text
    assert "<code>second</code>" not in text
    assert "None." in page("quarantine", dag_id="visits", reason="x') OR ('1'='1").text


def test_a_pipeline_without_refused_rows_says_so(page, no_reports):
    assert "No run has refused a row" in page("quarantine", dag_id="visits").text


def test_the_quarantine_hides_what_is_marked_pii(page, no_reports, monkeypatch):
    load = named.load_pipeline
    monkeypatch.setattr(
        named,
        "load_pipeline",
        lambda path: load(path).model_copy(update={"pii": ["page"]}),
    )
    refuse(
        [
            ('{"id": 1, "page": "/private"}', ["null_time"], None),
            ("/private in text that is no JSON", ["malformed"], None),
            ('{"id": 2, "page": "/private", "rest": "' + "x" * 30_000 + '"}', ["late"], None),
        ]
    )
    text = page("quarantine", dag_id="visits").text
    assert "/private" not in text
    assert text.count("hidden: pii") == 3
    assert "marked <code>pii</code>: page" in text


def test_a_refused_row_is_escaped(page, no_reports):
    hostile = "<script>alert(1)</script>\u202e"
    refuse([(hostile, [hostile], hostile)])
    answer = page("quarantine", dag_id="visits", reason=hostile)
    assert "<script" not in answer.text
    assert "\u202e" not in answer.text
    assert "&lt;script&gt;alert(1)" in answer.text
    assert "script-src" not in answer.headers["content-security-policy"]


def test_the_quarantine_is_limited_in_rows_and_in_the_length_of_values(page, no_reports):
    refuse([(f"{n:03}" + "y" * 100_000, ["r" * 5000], "d" * 5000) for n in range(60)])
    text = page("quarantine", dag_id="visits").text
    assert text.count("… and more") == 1 + 3 * 50
    assert "No more than 50 rows are shown" in text
    assert "<code>059" in text
    assert "<code>009" not in text
    assert len(text) < 150_000


def test_a_quarantine_that_only_spark_can_read_says_what_does(page, no_reports):
    commit = Path(refuse([("row", ["why"], None)])) / "_delta_log" / f"{0:020}.json"
    asked = (
        '"minReaderVersion":3,"minWriterVersion":7,'
        '"readerFeatures":["typeWidening"],"writerFeatures":["typeWidening"]'
    )
    written = '"minReaderVersion":\\d+,"minWriterVersion":\\d+'
    commit.write_text(re.sub(written, asked, commit.read_text(), count=1))
    text = page("quarantine", dag_id="visits").text
    assert "Only Spark can read this table" in text
    assert "sluice show visits --step visits --quarantine" in text


def test_a_damaged_quarantine_is_told_in_a_sentence(page, no_reports):
    table = Path(refuse([("row", ["why"], None)]))
    for file in table.glob("*.parquet"):
        file.unlink()
    answer = page("quarantine", dag_id="visits")
    assert answer.status_code == 200
    assert "cannot be read" in answer.text


def test_without_the_pipelines_file_no_refused_row_is_shown(page, no_reports, monkeypatch):
    refuse([("told_to_nobody", ["why"], None)])
    monkeypatch.setattr(named, "find_pipelines", lambda folder: [])
    answer = page("quarantine", dag_id="visits")
    assert "told_to_nobody" not in answer.text
    assert "no pipeline has this name" in answer.text


def test_the_way_out_runs_its_own_script_and_no_other(page):
    hostile = '"><script>alert(1)</script>'
    answer = page("open", dag_id="visits", run_id=hostile)
    assert answer.text.count("<script") == 1
    assert 'href="../dags/visits/runs/%22%3E%3Cscript%3Ealert%281%29%3C%2Fscript%3E"' in answer.text
    policy = answer.headers["content-security-policy"]
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/]{43}='$", policy)
    assert "unsafe-inline" not in policy.partition("script-src")[2]


def test_the_icon_is_no_request(site, viewer):
    plugins = site.get("/api/v2/plugins", headers=viewer).json()["plugins"]
    views = next(plugin for plugin in plugins if plugin["name"] == "sluice")["external_views"]
    for view in views:
        assert view["icon"].startswith("data:image/svg+xml,%3Csvg")
        assert view["icon_dark_mode"].startswith("data:image/svg+xml,%3Csvg")
