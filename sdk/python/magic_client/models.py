"""The documents of the API. Fields that a newer daemon adds are kept in ``raw``."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Generic, Mapping, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    data: list[T]
    has_more: bool
    #: For ``starting_after``; None at the end.
    next_cursor: str | None


@dataclass(frozen=True)
class Connection:
    id: str
    provider: str
    name: str
    environment: str
    #: pending, connected, degraded, failed or disabled
    status: str
    health: dict[str, Any]
    created_at: str
    updated_at: str
    last_synced_at: str | None
    metadata: dict[str, Any]
    raw: Mapping[str, Any] = field(repr=False, compare=False, default_factory=dict)


@dataclass(frozen=True)
class StartedOAuth:
    #: Send the browser there.
    authorization_url: str
    #: Good for one authorization.
    state: str = field(repr=False)
    expires_at: str
    raw: Mapping[str, Any] = field(repr=False, compare=False, default_factory=dict)


@dataclass(frozen=True)
class DataObject:
    name: str
    schema: dict[str, Any]
    primary_key: list[str]
    cursor_candidates: list[str]
    records: int | None
    raw: Mapping[str, Any] = field(repr=False, compare=False, default_factory=dict)


@dataclass(frozen=True)
class Connector:
    id: str
    name: str
    category: str
    auth: dict[str, Any]
    capabilities: dict[str, Any]
    grade: str
    config_schema: dict[str, Any]
    objects: list[dict[str, Any]]
    raw: Mapping[str, Any] = field(repr=False, compare=False, default_factory=dict)


@dataclass(frozen=True)
class Run:
    id: str
    sync: str
    #: queued, running, completed, failed or canceled
    status: str
    trigger: str
    started_at: str | None
    finished_at: str | None
    records_read: int
    records_synced: int
    records_rejected: int
    bytes: int
    throughput: dict[str, float]
    errors: list[dict[str, str]]
    error: dict[str, str] | None
    warnings: list[dict[str, str]]
    proof: dict[str, Any] | None
    raw: Mapping[str, Any] = field(repr=False, compare=False, default_factory=dict)

    @property
    def ended(self) -> bool:
        return self.status not in ("queued", "running")


@dataclass(frozen=True)
class Sync:
    id: str
    environment: str
    name: str | None
    source: dict[str, str]
    destination: dict[str, str]
    schedule: Any
    mode: str
    #: active, running, paused or failed
    status: str
    #: Over all runs.
    records_synced: int
    last_run: Run | None
    next_run_at: str | None
    throughput: dict[str, float]
    errors: list[dict[str, str]]
    metadata: dict[str, Any]
    created_at: str
    updated_at: str
    raw: Mapping[str, Any] = field(repr=False, compare=False, default_factory=dict)


@dataclass(frozen=True)
class Reject:
    id: str
    key: str
    column: str | None
    reason: str
    raw: Mapping[str, Any] = field(repr=False, compare=False, default_factory=dict)


@dataclass(frozen=True)
class Webhook:
    id: str
    url: str
    events: list[str]
    status: str
    environment: str
    description: str | None
    created_at: str
    updated_at: str
    #: Only in the answers of ``create`` and ``roll``.
    secret: str | None = field(repr=False, default=None)
    raw: Mapping[str, Any] = field(repr=False, compare=False, default_factory=dict)


@dataclass(frozen=True)
class Delivery:
    id: str
    webhook: str
    event_id: str
    event_type: str
    #: pending, succeeded or failed
    status: str
    payload: dict[str, Any]
    attempts: list[dict[str, Any]]
    response_code: int | None
    next_attempt_at: str | None
    created_at: str
    raw: Mapping[str, Any] = field(repr=False, compare=False, default_factory=dict)


def build(model: type[T], document: Mapping[str, Any]) -> T:
    """The document as its model; what the model does not know stays in ``raw``."""
    names = {one.name for one in dataclasses.fields(model)} - {"raw"}  # type: ignore[arg-type]
    known = {name: document.get(name) for name in names if name in document or name != "secret"}
    if model is Sync and document.get("last_run"):
        known["last_run"] = build(Run, document["last_run"])
    return model(**known, raw=document)
