"""The ledger of written batches, the lock that lets one delivery of a batch go on at a time, and
the staging tables that belong to it."""

import hashlib
import json
import re
import secrets
from collections.abc import Collection, Mapping

from .postgres import Database
from .staging import Staged
from .table import quote_name, split_name

_CREATE = """
CREATE TABLE IF NOT EXISTS {ledger} (key text, target text, batch bigint, rows bigint NOT NULL,
  written_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (key, target, batch))"""
_NOTE = """
INSERT INTO {ledger} (key, target, batch, rows) SELECT ?, ?, ?::bigint, count(*) FROM {source}
ON CONFLICT (key, target, batch) DO NOTHING"""
_FORGET = """
DELETE FROM {ledger} WHERE target = ? AND NOT EXISTS (SELECT FROM {target})
  AND key || '/' || batch NOT IN (SELECT json_array_elements_text(?::json))"""
_KNOWN = """
SELECT to_json(EXISTS (SELECT FROM {ledger} WHERE target = ?
  AND key IN (SELECT json_array_elements_text(?::json))))"""
_RESTORE = """
INSERT INTO {ledger} (key, target, batch, rows) SELECT key, ?, number, -1
FROM json_each(?::json) AS had (key, ends),
  generate_series((ends ->> 0)::bigint, (ends ->> 1)::bigint) AS number
WHERE key || '/' || number NOT IN (SELECT json_array_elements_text(?::json))
ON CONFLICT (key, target, batch) DO NOTHING"""
_MADE_ANEW = "made anew"
"""Key of a note that is none of a batch: the ledger was made when the table held rows."""
_STAGING = r"sluice_stage_([0-9a-f]{16})_[0-9a-f]{8}"
_LEFT = """
SELECT json_agg(tablename) FROM pg_tables
WHERE schemaname = coalesce(nullif(?, ''), current_schema())
  AND tableowner = current_user AND tablename ~ '^sluice_stage_'"""


class Ledger:
    """The ledger of one sink's table. A step may have two JDBC sinks, so the table is part of a
    batch's key. Methods raise SqlError."""

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        *self._schema, _ = self._parts = split_name(name, "ledger")
        self._name = quote_name(*self._parts)

    def create(self) -> bool:
        """Create it where it is absent; returns whether it was."""
        absent = self._database.ask("SELECT to_json(to_regclass(?) IS NULL)", self._name)
        self._database.run(_CREATE, ledger=self._name)
        return bool(absent)

    def mark_made_anew(self, target: str) -> None:
        """Note that the ledger was made when a table held rows already."""
        self._database.run(
            "INSERT INTO {ledger} (key, target, batch, rows) VALUES (?, ?, -1, 0)",
            _MADE_ANEW,
            target,
            ledger=self._name,
        )

    def was_made_anew(self, target: str) -> bool:
        """Whether it was made when a table held rows already."""
        return self.knows_any(target, [_MADE_ANEW])

    def knows_any(self, target: str, keys: Collection[str]) -> bool:
        """Whether a batch of a table stands under one of these keys."""
        found = self._database.ask(_KNOWN, target, json.dumps(sorted(keys)), ledger=self._name)
        return bool(found)

    def restore(self, target: str, known: Mapping[str, range], but: Collection[str]) -> None:
        """Note batches that a table is known to have, with -1 for their rows.

        Args: known: by key. but: tokens of those it has not.
        """
        ends = {key: (those.start, those.stop - 1) for key, those in known.items()}
        left_out = json.dumps(sorted(but))
        self._database.run(_RESTORE, target, json.dumps(ends), left_out, ledger=self._name)

    def read(self, key: str, target: str, batch: int) -> int | None:
        """The rows of a batch that was written, -1 where their number was lost; None when it was
        not."""
        return self._database.ask(
            "SELECT to_json(rows) FROM {ledger} WHERE key = ? AND target = ? AND batch = ?::bigint",
            key,
            target,
            batch,
            ledger=self._name,
        )

    def forget(self, target: str, but: Collection[str] = ()) -> None:
        """Forget the batches of a table, where it is empty: nothing of them is there.

        Args: but: tokens of those that are kept.
        """
        self._database.run(
            _FORGET, target, json.dumps(sorted(but)), ledger=self._name, target=target
        )

    def strike(self, key: str, target: str, batch: int) -> None:
        """Take a batch's note away: it is written once more."""
        self._database.run(
            "DELETE FROM {ledger} WHERE key = ? AND target = ? AND batch = ?::bigint",
            key,
            target,
            batch,
            ledger=self._name,
        )

    def note(
        self, key: str, target: str, batch: int, staged: Staged, *, only_explain: bool = False
    ) -> bool:
        """Note a batch with as many rows as are staged; False when it stands there already.

        Waits for a transaction that is about to note the same.
        """
        statement = ("EXPLAIN " if only_explain else "") + _NOTE
        return (
            self._database.run(
                statement,
                key,
                target,
                batch,
                *staged.values,
                ledger=self._name,
                source=staged.source,
            )
            == 1
        )

    def lock(self, token: str) -> str:
        """Wait until no other connection delivers a batch; the lock ends with this one.

        Returns a name for its staging table.
        """
        number = hashlib.sha256(token.encode()).digest()[:8]
        self._database.run(
            "SELECT pg_advisory_lock(?::bigint)", int.from_bytes(number, signed=True)
        )
        return quote_name(*self._schema, f"sluice_stage_{number.hex()}_{secrets.token_hex(4)}")

    def drop_leftovers(self) -> None:
        """Drop the staging tables of deliveries that died: those whose lock nobody holds."""
        for name in self._database.ask(_LEFT, *self._schema or [""]) or []:
            staged = re.fullmatch(_STAGING, name)
            number = staged and int.from_bytes(bytes.fromhex(staged[1]), signed=True)
            if staged and self._database.ask(
                "SELECT to_json(pg_try_advisory_lock(?::bigint))", number
            ):
                self._database.run(
                    "DROP TABLE IF EXISTS {staging}", staging=quote_name(*self._schema, name)
                )
                self._database.run("SELECT pg_advisory_unlock(?::bigint)", number)
