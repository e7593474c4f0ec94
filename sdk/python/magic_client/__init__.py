"""The API of a magic daemon from Python. 0.1, preview. Standard library only."""

from .client import Client
from .errors import ApiError, WebhookVerificationError
from .models import Connection, Connector, DataObject, Delivery, Page, Reject, Run, StartedOAuth, Sync, Webhook
from .webhooks import WebhookEvent, verify_webhook

__all__ = [
    "ApiError",
    "Client",
    "Connection",
    "Connector",
    "DataObject",
    "Delivery",
    "Page",
    "Reject",
    "Run",
    "StartedOAuth",
    "Sync",
    "Webhook",
    "WebhookEvent",
    "WebhookVerificationError",
    "verify_webhook",
]
__version__ = "0.1.0"
