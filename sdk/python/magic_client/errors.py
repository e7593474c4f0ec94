"""What can go wrong."""

from __future__ import annotations

from typing import Any, Mapping


class ApiError(Exception):
    """What the API refused, or why it could not be reached (``status`` 0, ``code`` "connection_failed")."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(str(problem.get("detail") or problem.get("title") or f"the API answered {status}"))
        self.status = status
        #: A code of the error catalogue, such as ``limit_reached``.
        self.code: str = str(problem.get("code", "unknown"))
        self.request_id: str | None = problem.get("request_id")
        self.retryable: bool = problem.get("retryable") is True
        #: One entry for every wrong field: ``pointer``, ``code``, ``detail``.
        self.errors: list[dict[str, str]] = list(problem.get("errors") or [])


class WebhookVerificationError(Exception):
    """The message is not one of ours, or too old."""
