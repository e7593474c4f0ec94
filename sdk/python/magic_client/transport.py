"""One call of the API: retried where that is safe, every POST under an Idempotency-Key so that it is."""

from __future__ import annotations

import http.client
import json
import random
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from typing import Any, Mapping

from .errors import ApiError

_AGAIN = {429, 502, 503, 504}


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class Transport:
    def __init__(self, base_url: str, api_key: str, max_retries: int, timeout: float) -> None:
        if not api_key:
            raise ValueError("api_key is missing")
        self._base_url = base_url.rstrip("/")
        self._api_key = api_key
        self._max_retries = max_retries
        self._timeout = timeout
        # No redirects: the key goes to the daemon alone. No proxy variables: it is often on this machine.
        self._opener = urllib.request.build_opener(_NoRedirects, urllib.request.ProxyHandler({}))

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        given = {name: value for name, value in (query or {}).items() if value is not None}
        url = self._base_url + path + ("?" + urllib.parse.urlencode(given) if given else "")
        headers = {"Authorization": f"Bearer {self._api_key}", "Accept": "application/json"}
        payload = None
        if method == "POST" or body is not None:
            payload = json.dumps(body or {}).encode()
            headers["Content-Type"] = "application/json"
        if method == "POST":
            # The same key for every attempt: the API answers a repeated one with the first outcome.
            headers["Idempotency-Key"] = idempotency_key or str(uuid.uuid4())
        attempt = 0
        while True:
            error, again, retry_after = None, True, None
            try:
                request = urllib.request.Request(url, data=payload, headers=headers, method=method)
                status, headers_of_answer, text = self._send(request)
                if 200 <= status < 300:
                    return _document(status, text, self._base_url)
                error = ApiError(status, _problem(text))
                # The attempt before it may have removed it, its answer lost.
                if method == "DELETE" and status == 404 and attempt > 0:
                    return None
                again = status in _AGAIN or error.code == "idempotency_in_progress"
                retry_after = headers_of_answer.get("Retry-After")
            except (OSError, http.client.HTTPException) as lost:
                detail = f"{self._base_url} cannot be reached: {lost}"
                error = ApiError(0, {"code": "connection_failed", "detail": detail, "retryable": True})
            if not again or attempt >= self._max_retries:
                raise error
            time.sleep(_pause(attempt, retry_after))
            attempt += 1

    def _send(self, request: urllib.request.Request) -> tuple[int, Mapping[str, str], bytes]:
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.headers, refused.read()


def _document(status: int, text: bytes, base_url: str) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        raise ApiError(status, {"detail": f"{base_url} answered something that is not of this API"}) from None


def _pause(attempt: int, retry_after: str | None) -> float:
    if retry_after is not None and retry_after.isdigit():
        return float(min(60, int(retry_after)))
    return min(8.0, 0.25 * 2**attempt) * (0.5 + random.random() / 2)


def _problem(text: bytes) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    return document if isinstance(document, dict) else {"detail": text[:200].decode(errors="replace")}
