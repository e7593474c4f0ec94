"""The receiving side of webhooks: https://www.standardwebhooks.com/"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from dataclasses import dataclass
from typing import Any, Mapping

from .errors import WebhookVerificationError

TOLERANCE_S = 300


@dataclass(frozen=True)
class WebhookEvent:
    #: The same for every attempt: keep it to recognise an event that came twice.
    id: str
    #: sync.completed, sync.failed, connection.failed, data.changed or webhook.test
    type: str
    timestamp: str
    data: dict[str, Any]


def verify_webhook(body: bytes | str, headers: Mapping[str, str], secret: str | None, *, now: float | None = None) -> WebhookEvent:
    """The event, when its signature fits and it is at most five minutes old.

    ``body`` is exactly what came, not parsed and written again.

    :raises WebhookVerificationError: otherwise.
    """
    raw = body.encode() if isinstance(body, str) else body
    lower = {name.lower(): value for name, value in headers.items()}
    try:
        message_id, stamp, signatures = (lower[name] for name in ("webhook-id", "webhook-timestamp", "webhook-signature"))
    except KeyError as missing:
        raise WebhookVerificationError(f"the header {missing} is missing") from None
    # Python refuses to read thousands of digits.
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12):
        raise WebhookVerificationError("the timestamp is no number")
    if abs((time.time() if now is None else now) - int(stamp)) > TOLERANCE_S:
        raise WebhookVerificationError("the message is too old, or from the future")
    try:
        key = base64.b64decode((secret or "").removeprefix("whsec_"))
    except ValueError:
        raise WebhookVerificationError("the secret is not a webhook's") from None
    # Anybody can sign with nothing.
    if not key:
        raise WebhookVerificationError("there is no secret to verify it by")
    # Servers hand on bytes that are no text as surrogates.
    signed = f"{message_id}.{stamp}.".encode(errors="surrogatepass") + raw
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    for one in signatures.split(" "):
        version, _, signature = one.partition(",")
        if version == "v1" and hmac.compare_digest(signature.encode(errors="surrogatepass"), expected.encode()):
            break
    else:
        raise WebhookVerificationError("no signature fits")
    try:
        document = json.loads(raw)
        return WebhookEvent(message_id, document["type"], document["timestamp"], document["data"])
    except (ValueError, KeyError, TypeError) as wrong:
        raise WebhookVerificationError("the body is not an event") from wrong
