"""Kinds that are no file's content: what happens to files, folders and the disk around a run.

Each names the test that makes it.
"""

from tests.bad_input.kind import Kind

EVENTS = (
    Kind(
        "overwritten",
        "a file overwritten after it was read",
        "not read again; a warning of the next look at all files (each run's, and one a day where "
        "nothing is new) names it and says to land a correction under a new name",
        test="test_a_file_overwritten_after_it_was_read_is_not_read_again_and_the_report_says_so",
    ),
    Kind(
        "overwritten_while_waiting",
        "a file overwritten before it was read",
        "its newest content is read, once",
        test="test_a_file_overwritten_before_it_was_read_is_read_once_with_its_newest_content",
    ),
    Kind(
        "deleted",
        "a file deleted between listing and reading",
        "one quarantine row `unreadable_file`",
        test="test_files_that_go_and_come_around_a_run_lose_and_shift_nothing",
    ),
    Kind(
        "deleted_after",
        "a file deleted after it was read; one of its name that comes again",
        "its rows stay; not read again",
        test="test_a_file_deleted_after_it_was_read_keeps_its_rows",
    ),
    Kind(
        "landed_meanwhile",
        "a file that lands while the run starts",
        "read in this run or the next, by its own header",
        test="test_a_file_that_lands_between_plan_and_listing_is_read_by_its_own_header",
    ),
    Kind(
        "clock_skew",
        "modification times of 1970, of the future, and older than files already read",
        "read, each file once",
        test="test_modification_times_of_any_year_lose_no_file",
    ),
    Kind(
        "tiny_files",
        "very many tiny files (100 000 with `SLUICE_LONG=1`)",
        "read, each once",
        test="test_very_many_tiny_files_are_read_once_each",
    ),
    Kind(
        "links",
        "links to a file or a folder, out of the landing folder or to a file in it",
        "followed; a file is known by its path, so two names are two files",
        test="test_links_are_followed_and_broken_ones_are_no_files",
    ),
    Kind(
        "broken_links",
        "a dangling link, a link to itself",
        "no file",
        test="test_links_are_followed_and_broken_ones_are_no_files",
    ),
    Kind(
        "looping_link",
        "a link to a folder above it",
        "exit code 6 before Spark starts, with the link's name: "
        "Spark would read every file forty times",
        test="test_a_link_that_leads_back_to_a_folder_above_it_is_an_error_that_names_it",
    ),
    Kind(
        "no_landing_folder",
        "landing folder absent or unreadable",
        "exit code 6 before Spark starts",
        test="test_a_landing_folder_that_cannot_be_read_is_an_error_before_spark_starts",
    ),
    Kind(
        "file_for_a_folder",
        "a file where the table's folder should be",
        "exit code 5 or 6 with the path; the next run works when it is gone",
        test="test_a_file_where_the_table_belongs_is_an_error_that_names_it",
    ),
    Kind(
        "full_disk",
        "a disk that takes no more while the table is written",
        "exit code 5; nothing is half written, and the next run writes every row once",
        test="test_a_disk_that_takes_no_more_ends_the_run_and_the_next_one_writes_every_row",
    ),
    Kind(
        "script_in_a_name",
        "HTML and script in file names",
        "read; escaped in the report",
        test="test_script_in_values_and_names_is_text_in_the_report",
    ),
    Kind(
        "other_encodings",
        "declared ISO-8859-1, windows-1252, UTF-16",
        "read (UTF-16 without a byte order mark is read as big-endian)",
        test="test_a_declared_encoding_is_decoded_header_and_rows",
    ),
    Kind(
        "json_documents",
        "JSON with `multi_line`: broken, blank or several documents in a file",
        "`malformed` as a whole; no rows; `malformed`",
        test="test_json_documents_may_span_lines",
    ),
    Kind(
        "csv_line_breaks",
        "CSV with `multi_line`: line breaks in values, an unclosed quote",
        "read; `malformed` to the end of the file",
        test="test_csv_values_may_hold_line_breaks_and_keep_header_and_raw_text",
    ),
    Kind(
        "typed_columns",
        "Parquet, ORC: columns added, missing, moved, in another case; cut and misnamed files",
        "matched by name; `_rescued`; NULL and a warning; `unreadable_file`",
        test="test_parquet_and_orc_are_matched_by_name_and_broken_files_are_refused",
    ),
    Kind(
        "avro",
        "Avro: columns added or missing; cut, misnamed and empty files",
        "the same",
        test="test_avro_is_matched_by_name_and_broken_files_are_refused",
    ),
    Kind(
        "files_disagree",
        "Parquet: files that disagree on the type of an undeclared column",
        "a clear error that names the files",
        test="test_files_that_disagree_on_an_undeclared_column_are_an_error_that_names_it",
    ),
    Kind(
        "policy_fail",
        "fields outside the schema under `unknown_fields: fail`",
        "exit code 6, nothing read",
        test="test_undeclared_fields_stop_the_run_where_the_policy_is_fail",
    ),
    Kind(
        "policy_ignore",
        "fields outside the schema under `unknown_fields: ignore`",
        "left out",
        test="test_undeclared_fields_are_left_out_where_the_policy_is_ignore",
    ),
    Kind(
        "wrong_pipeline",
        "unknown field, bad duration, rule on a missing column, SQL error, "
        "two steps with one name, … in the YAML",
        "exit code 6 with file, field, value and what to write",
        test="test_a_wrong_pipeline_is_one_clear_sentence_before_spark_starts",
    ),
)
