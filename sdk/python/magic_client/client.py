"""The resources of the API as methods. Lists are pages; ``iterate`` walks through all of them."""

from __future__ import annotations

import time
from typing import Any, Callable, Iterator, Mapping, Sequence, TypeVar
from urllib.parse import quote

from .models import Connection, Connector, DataObject, Delivery, Page, Reject, Run, StartedOAuth, Sync, Webhook, build
from .transport import Transport

T = TypeVar("T")


class Client:
    """``Client(base_url, api_key)``: ``sk_test_`` keys see the sandbox, ``sk_live_`` keys live."""

    def __init__(self, base_url: str, api_key: str, *, max_retries: int = 3, timeout: float = 30.0) -> None:
        self.transport = Transport(base_url, api_key, max_retries, timeout)
        self.connectors = Connectors(self.transport)
        self.connections = Connections(self.transport)
        self.syncs = Syncs(self.transport)
        self.runs = Runs(self.transport)
        self.webhooks = Webhooks(self.transport)


class _Resource:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _get(self, model: type[T], path: str) -> T:
        return build(model, self._transport.call("GET", path))

    def _post(self, model: type[T], path: str, body: Mapping[str, Any] | None = None, key: str | None = None) -> T:
        return build(model, self._transport.call("POST", path, body=body, idempotency_key=key))

    def _patch(self, model: type[T], path: str, change: Mapping[str, Any]) -> T:
        return build(model, self._transport.call("PATCH", path, body=change))

    def _page(self, model: type[T], path: str, query: Mapping[str, Any]) -> Page[T]:
        answer = self._transport.call("GET", path, query=query)
        return Page([build(model, one) for one in answer["data"]], answer["has_more"], answer["next_cursor"])


def _walk(page_of: Callable[..., Page[T]], query: Mapping[str, Any]) -> Iterator[T]:
    # Newest first; from ``ending_before`` on towards the newest.
    side = "starting_after" if query.get("ending_before") is None else "ending_before"
    query = {"limit": 100, **query}
    while True:
        page = page_of(**query)
        yield from page.data if side == "starting_after" else reversed(page.data)
        if page.next_cursor is None:
            return
        query = {**query, side: page.next_cursor}


class Connectors(_Resource):
    def list(self, **query: Any) -> Page[Connector]:
        """``category``, ``limit``, ``starting_after``, ``ending_before``."""
        return self._page(Connector, "/v1/connectors", query)

    def iterate(self, **query: Any) -> Iterator[Connector]:
        return _walk(self.list, query)

    def get(self, id: str) -> Connector:
        return self._get(Connector, f"/v1/connectors/{quote(id, safe='')}")


class Connections(_Resource):
    def create(
        self,
        provider: str,
        *,
        name: str | None = None,
        config: Mapping[str, Any] | None = None,
        credentials: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Connection:
        body = _given(provider=provider, name=name, config=config, credentials=credentials, metadata=metadata)
        return self._post(Connection, "/v1/connections", body, idempotency_key)

    def list(self, **query: Any) -> Page[Connection]:
        """``provider``, ``status``, ``limit``, ``starting_after``, ``ending_before``."""
        return self._page(Connection, "/v1/connections", query)

    def iterate(self, **query: Any) -> Iterator[Connection]:
        return _walk(self.list, query)

    def get(self, id: str) -> Connection:
        return self._get(Connection, _connection(id))

    def update(self, id: str, **change: Any) -> Connection:
        """A merge patch: ``metadata={"team": None}`` removes that key."""
        return self._patch(Connection, _connection(id), change)

    def delete(self, id: str) -> None:
        """Pauses its syncs."""
        self._transport.call("DELETE", _connection(id))

    def check(self, id: str) -> Connection:
        """Tests it now."""
        return self._post(Connection, f"{_connection(id)}/check")

    def objects(self, id: str, **query: Any) -> Page[DataObject]:
        """All of them, or a page: ``limit``, ``starting_after``, ``ending_before`` by name."""
        return self._page(DataObject, f"{_connection(id)}/objects", query)

    def start_oauth(
        self,
        provider: str,
        callback_url: str,
        *,
        name: str | None = None,
        scopes: Sequence[str] | None = None,
        config: Mapping[str, Any] | None = None,
        credentials: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        connection: str | None = None,
        idempotency_key: str | None = None,
    ) -> StartedOAuth:
        """Begins an authorization at the provider: send the browser to ``authorization_url``. Live only.

        It comes back to ``callback_url`` with ``connection`` and ``status=connected``, or with ``error``.
        ``connection`` authorizes one that exists anew.
        """
        body = _given(
            provider=provider,
            callback_url=callback_url,
            name=name,
            scopes=scopes,
            config=config,
            credentials=credentials,
            metadata=metadata,
            connection=connection,
        )
        return self._post(StartedOAuth, "/v1/connections/oauth/start", body, idempotency_key)


class Syncs(_Resource):
    def create(
        self,
        *,
        source: Mapping[str, str],
        destination: Mapping[str, str],
        idempotency_key: str | None = None,
        **options: Any,
    ) -> Sync:
        """``schedule``, ``timezone``, ``mode``, ``primary_key``, ``cursor_field``, ``columns``, ``mapping``, ``deletes``..."""
        body = {"source": dict(source), "destination": dict(destination), **_given(**options)}
        return self._post(Sync, "/v1/syncs", body, idempotency_key)

    def list(self, **query: Any) -> Page[Sync]:
        """``status``, ``connection``, ``limit``, ``starting_after``, ``ending_before``."""
        return self._page(Sync, "/v1/syncs", query)

    def iterate(self, **query: Any) -> Iterator[Sync]:
        return _walk(self.list, query)

    def get(self, id: str) -> Sync:
        return self._get(Sync, _sync(id))

    def update(self, id: str, **change: Any) -> Sync:
        return self._patch(Sync, _sync(id), change)

    def pause(self, id: str) -> Sync:
        return self.update(id, status="paused")

    def resume(self, id: str) -> Sync:
        return self.update(id, status="active")

    def delete(self, id: str) -> None:
        self._transport.call("DELETE", _sync(id))

    def trigger(
        self,
        id: str,
        *,
        full_refresh: bool | None = None,
        objects: Sequence[str] | None = None,
        idempotency_key: str | None = None,
    ) -> Run:
        """Starts a run, or answers the one under way; ``runs.wait`` follows it."""
        return self._post(Run, f"{_sync(id)}/trigger", _given(full_refresh=full_refresh, objects=objects), idempotency_key)

    def runs(self, id: str, **query: Any) -> Page[Run]:
        """``status``, ``limit``, ``starting_after``, ``ending_before``."""
        return self._page(Run, f"{_sync(id)}/runs", query)

    def iterate_runs(self, id: str, **query: Any) -> Iterator[Run]:
        return _walk(lambda **page: self.runs(id, **page), query)


class Runs(_Resource):
    def get(self, id: str) -> Run:
        return self._get(Run, f"/v1/runs/{quote(id, safe='')}")

    def cancel(self, id: str) -> Run:
        return self._post(Run, f"/v1/runs/{quote(id, safe='')}/cancel")

    def rejects(self, id: str, **query: Any) -> Page[Reject]:
        return self._page(Reject, f"/v1/runs/{quote(id, safe='')}/rejects", query)

    def iterate_rejects(self, id: str, **query: Any) -> Iterator[Reject]:
        return _walk(lambda **page: self.rejects(id, **page), query)

    def wait(self, id: str, *, timeout: float | None = None, interval: float = 0.5) -> Run:
        """The run when it has ended, however it did: look at ``status``.

        :raises TimeoutError: when it has not after ``timeout`` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            run = self.get(id)
            if run.ended:
                return run
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"the run {id} is still {run.status}")
            time.sleep(interval)


class Webhooks(_Resource):
    def create(
        self, url: str, events: Sequence[str], *, description: str | None = None, idempotency_key: str | None = None
    ) -> Webhook:
        """``secret`` is in this answer alone."""
        body = _given(url=url, events=events, description=description)
        return self._post(Webhook, "/v1/webhooks", body, idempotency_key)

    def list(self, **query: Any) -> Page[Webhook]:
        return self._page(Webhook, "/v1/webhooks", query)

    def iterate(self, **query: Any) -> Iterator[Webhook]:
        return _walk(self.list, query)

    def get(self, id: str) -> Webhook:
        return self._get(Webhook, _webhook(id))

    def update(self, id: str, **change: Any) -> Webhook:
        return self._patch(Webhook, _webhook(id), change)

    def delete(self, id: str) -> None:
        self._transport.call("DELETE", _webhook(id))

    def roll(self, id: str, *, overlap_s: int | None = None) -> Webhook:
        return self._post(Webhook, f"{_webhook(id)}/roll", _given(overlap_s=overlap_s))

    def test(self, id: str) -> Delivery:
        return self._post(Delivery, f"{_webhook(id)}/test")

    def deliveries(self, id: str, **query: Any) -> Page[Delivery]:
        """``status``, ``limit``, ``starting_after``, ``ending_before``."""
        return self._page(Delivery, f"{_webhook(id)}/deliveries", query)

    def iterate_deliveries(self, id: str, **query: Any) -> Iterator[Delivery]:
        return _walk(lambda **page: self.deliveries(id, **page), query)

    def redeliver(self, id: str, delivery: str) -> Delivery:
        return self._post(Delivery, f"{_webhook(id)}/deliveries/{quote(delivery, safe='')}/redeliver")


def _given(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _connection(id: str) -> str:
    return f"/v1/connections/{quote(id, safe='')}"


def _sync(id: str) -> str:
    return f"/v1/syncs/{quote(id, safe='')}"


def _webhook(id: str) -> str:
    return f"/v1/webhooks/{quote(id, safe='')}"
