"""Who sees which page of Airflow's UI, and what stands there."""

from datetime import UTC, datetime

import pytest
from sluice.report.model import BatchReport, Counts, Outcome, RuleResult, RunReport, StepReport
from sluice.report.store import report_path, write_report
from sluice.storage import Paths

from tests.airflow_service import write_pipeline

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
    now = datetime.now(UTC)
    counts = Counts(read=10, entered=10, made=10, written=9, quarantined=1)
    rule = RuleResult(
        name=changes.pop("rule", "seconds_not_negative"),
        type="expect_column_values_to_be_between",
        level="row",
        on_fail="quarantine",
        outcome=Outcome.FAILED,
        evaluated=10,
        unexpected=1,
    )
    step = StepReport(
        name=pipeline,
        target="t",
        quarantine="q",
        counts=counts,
        batches=[BatchReport(batch_id=0, counts=counts)],
        rules=[rule],
    )
    report = RunReport(
        **{
            "pipeline": pipeline,
            "run_id": run_id,
            "started": now,
            "ended": now,
            "status": "done",
            "steps": [step],
        }
        | changes
    )
    write_report(report, Paths.under(None, pipeline).reports())
    return report


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


def test_the_report_is_the_file_the_run_wrote(site, viewer, no_reports):
    store("visits")
    answer = site.get(REPORT, params={"dag_id": "visits", "run_id": RUN_ID}, headers=viewer)
    assert (
        answer.text
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
        ("Data quality", "nav"),
        ("Quality report", "dag_run"),
    }
    assert site.get("/api/v2/plugins/importErrors", headers=viewer).json()["import_errors"] == []
