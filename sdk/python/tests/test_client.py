"""Runs against a daemon: MAGIC_URL, MAGIC_API_KEY (sandbox), MAGIC_LIVE_KEY and RECEIVER_URL say where. See test/integrations/sdk-python.test.ts."""

import base64
import contextlib
import hashlib
import hmac
import json
import os
import re
import socket
import sys
import threading
import time
import unittest
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from magic_client import ApiError, Client, WebhookVerificationError, verify_webhook  # noqa: E402

URL = os.environ["MAGIC_URL"]
TAGS = {"connectors", "connections", "syncs", "runs", "webhooks"}


def sandbox(**options):
    return Client(URL, os.environ["MAGIC_API_KEY"], **options)


def recorded(client):
    """(method, path) of every call from now on."""
    calls, call = [], client.transport.call

    def record(method, path, **rest):
        calls.append((method, path))
        return call(method, path, **rest)

    client.transport.call = record
    return calls


class EveryOperation(unittest.TestCase):
    def test_every_operation_has_a_method_and_every_method_an_operation(self):
        magic = sandbox()
        calls = recorded(magic)
        self.assertIn("instance_url", magic.connectors.get("salesforce").config_schema["properties"])
        self.assertGreaterEqual(len(list(magic.connectors.iterate(category="crm"))), 3)
        source = magic.connections.create("salesforce", metadata={"team": "crm", "x": 1})
        target = magic.connections.create("postgres", config={"url": "postgres://h/db"})
        sync = magic.syncs.create(
            source={"connection": source.id, "object": "Account"},
            destination={"connection": target.id, "table": "accounts"},
        )
        run = magic.runs.wait(magic.syncs.trigger(sync.id, full_refresh=True).id, timeout=10)
        self.assertEqual(run.status, "completed")
        self.assertGreater(run.records_synced, 0)
        again = magic.syncs.get(sync.id)
        self.assertEqual((again.records_synced, again.last_run.id), (run.records_synced, run.id))
        self.assertEqual([one.id for one in magic.syncs.iterate_runs(sync.id)], [run.id])
        self.assertEqual(len(list(magic.runs.iterate_rejects(run.id))), run.records_rejected)
        with self.assertRaises(ApiError) as refused:
            magic.runs.cancel(run.id)
        self.assertEqual((refused.exception.status, refused.exception.code), (409, "conflict"))
        self.assertEqual(magic.connections.check(source.id).status, "connected")
        self.assertEqual(magic.connections.objects(source.id).data[0].primary_key, ["Id"])
        self.assertEqual(magic.connections.update(source.id, metadata={"x": None}).metadata, {"team": "crm"})
        self.assertEqual(magic.connections.get(source.id).raw["object"], "connection")
        self.assertEqual(magic.syncs.pause(sync.id).status, "paused")
        self.assertEqual(magic.syncs.resume(sync.id).status, "active")
        self.assertIn(sync.id, [one.id for one in magic.syncs.iterate(connection=source.id)])
        magic.syncs.delete(sync.id)
        magic.connections.delete(source.id)
        self.assertNotIn(source.id, [one.id for one in magic.connections.iterate()])

        live = Client(URL, os.environ["MAGIC_LIVE_KEY"])
        live_calls = recorded(live)
        webhook = live.webhooks.create(os.environ["RECEIVER_URL"], ["sync.failed"])
        self.assertTrue(webhook.secret.startswith("whsec_"))
        self.assertNotIn(webhook.secret, repr(webhook))
        delivery = live.webhooks.test(webhook.id)
        for _ in range(400):
            done = live.webhooks.deliveries(webhook.id, status="succeeded").data
            if done:
                break
            time.sleep(0.05)
        self.assertEqual(done[0].event_id, delivery.event_id)
        live.webhooks.redeliver(webhook.id, delivery.id)
        self.assertNotEqual(live.webhooks.roll(webhook.id, overlap_s=0).secret, webhook.secret)
        self.assertEqual(live.webhooks.update(webhook.id, description="x").description, "x")
        self.assertIsNone(live.webhooks.get(webhook.id).secret)
        self.assertEqual([one.id for one in live.webhooks.iterate()], [webhook.id])
        live.webhooks.delete(webhook.id)
        begun = live.connections.start_oauth("salesforce", "https://app.example.com/done", config={"client_id": "x"})
        self.assertIn("code_challenge_method=S256", begun.authorization_url)
        self.assertNotIn(begun.state, repr(begun).replace(begun.authorization_url, ""))

        with urllib.request.urlopen(URL + "/openapi.json") as answer:
            paths = json.load(answer)["paths"]
        wanted = {
            (method.upper(), re.sub(r"\{\w+\}", "{id}", path))
            for path, methods in paths.items()
            for method, operation in methods.items()
            if TAGS & set(operation.get("tags", [])) and not path.endswith("/oauth/callback")
        }
        called = {
            (method, re.sub(r"/(?:(?:conn|sync|run|wh|dlv)_[a-z0-9]+|salesforce)", "/{id}", path))
            for method, path in calls + live_calls
        }
        self.assertEqual(called, wanted)


class Pages(unittest.TestCase):
    def test_iterate_walks_through_every_page(self):
        magic = sandbox()
        for number in range(5):
            magic.connections.create("mysql", name=f"page{number}")
        names = [one.name for one in magic.connections.iterate(provider="mysql", limit=2)]
        self.assertEqual(names, ["page4", "page3", "page2", "page1", "page0"])
        oldest = [one.id for one in magic.connections.iterate(provider="mysql")][-1]
        ahead = [one.name for one in magic.connections.iterate(provider="mysql", limit=3, ending_before=oldest)]
        self.assertEqual(ahead, ["page1", "page2", "page3", "page4"])


class Refusals(unittest.TestCase):
    def test_a_refusal_names_every_wrong_field(self):
        with self.assertRaises(ApiError) as refused:
            sandbox().syncs.create(source={}, destination={})
        self.assertEqual((refused.exception.status, refused.exception.code), (422, "validation_failed"))
        self.assertIn("/source/connection", [one["pointer"] for one in refused.exception.errors])
        self.assertTrue(refused.exception.request_id)

    def test_an_absent_daemon_is_connection_failed(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with self.assertRaises(ApiError) as refused:
            Client(f"http://127.0.0.1:{port}", "k", max_retries=1).syncs.get("x")
        self.assertEqual(refused.exception.code, "connection_failed")


class Retries(unittest.TestCase):
    def test_a_post_is_sent_again_under_the_same_key(self):
        keys, codes = [], [503, 429, 200]

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                keys.append(self.headers["Idempotency-Key"])
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(codes.pop(0))
                self.send_header("Retry-After", "0")
                self.end_headers()
                self.wfile.write(b'{"id": "run_1", "status": "queued"}')

            def log_message(self, *_):
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            run = Client(f"http://127.0.0.1:{server.server_port}", "k").syncs.trigger("sync_1")
        finally:
            server.shutdown()
            server.server_close()
        self.assertEqual(run.id, "run_1")
        self.assertEqual((len(keys), len(set(keys))), (3, 1))


    def test_a_removal_whose_answer_was_lost_has_happened(self):
        with answering([(503, b""), (404, b"{}")]) as url:
            self.assertIsNone(Client(url, "k").syncs.delete("sync_1"))
        with answering([(404, b"{}")]) as url, self.assertRaises(ApiError):
            Client(url, "k").syncs.delete("sync_1")

    def test_what_is_no_answer_of_the_api_is_an_error_of_its_own(self):
        with answering([(200, b"<html>")]) as url, self.assertRaisesRegex(ApiError, "not of this API"):
            Client(url, "k").syncs.get("sync_1")


@contextlib.contextmanager
def answering(answers):
    """A server with these answers, one after the other."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            status, body = answers.pop(0)
            self.send_response(status)
            self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(body)

        do_DELETE = do_GET

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class Signatures(unittest.TestCase):
    SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    BODY = '{"test": 2432232314}'
    HEADERS = {
        "Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "Webhook-Timestamp": "1614265330",
        "Webhook-Signature": "v1,AAAA v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }

    def test_the_standard_vector_is_signed_right_and_is_no_event(self):
        with self.assertRaisesRegex(WebhookVerificationError, "not an event"):
            verify_webhook(self.BODY, self.HEADERS, self.SECRET, now=1614265330)

    def test_changed_old_future_and_unsigned_messages_are_refused(self):
        for body, headers, now in [
            (self.BODY + " ", self.HEADERS, 1614265330),
            (self.BODY, self.HEADERS, 1614265330 + 301),
            (self.BODY, self.HEADERS, 1614265330 - 301),
            (self.BODY, {**self.HEADERS, "Webhook-Timestamp": "x"}, 1614265330),
            (self.BODY, {**self.HEADERS, "Webhook-Timestamp": "9" * 5000}, 1614265330),
            (self.BODY, {**self.HEADERS, "Webhook-Id": "\udcff", "Webhook-Signature": "v1,\udcff"}, 1614265330),
            (self.BODY, {}, 1614265330),
        ]:
            with self.assertRaisesRegex(WebhookVerificationError, "fits|old|number|missing"):
                verify_webhook(body, headers, self.SECRET, now=now)

    def test_without_a_secret_nothing_is_trusted(self):
        signature = base64.b64encode(hmac.new(b"", b"m.1614265330.{}", hashlib.sha256).digest()).decode()
        headers = {"webhook-id": "m", "webhook-timestamp": "1614265330", "webhook-signature": f"v1,{signature}"}
        for secret in ["", "whsec_", None, "whsec_abc"]:
            with self.assertRaisesRegex(WebhookVerificationError, "secret"):
                verify_webhook("{}", headers, secret, now=1614265330)


if __name__ == "__main__":
    unittest.main()
