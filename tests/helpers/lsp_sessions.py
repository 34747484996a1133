"""Sessions with the language server, driven by a client that others wrote."""

import asyncio
import sys

import pytest

from shared_files import ROOT

pytest_lsp = pytest.importorskip("pytest_lsp")
lsp = pytest.importorskip("pygls.lsp.server").types

COMMAND = [sys.executable, "-m", "buda_emu", "lsp"]
GOOD = (ROOT / "netlists/attention.yaml").read_text()
URI = "file:///netlists/attention.yaml"


def converse(talk, *texts, command=COMMAND):
    """Run a session with what a command starts: initialise, open the texts, `talk(client, uris)`, shut down."""

    async def session():
        client = pytest_lsp.make_test_lsp_client()
        await client.start_io(*command)
        try:
            await client.initialize_session(
                lsp.InitializeParams(process_id=None, root_uri=None, capabilities=lsp.ClientCapabilities())
            )
            uris = []
            for number, text in enumerate(texts or (GOOD,)):
                uri = URI if not number else f"file:///other{number}.yaml"
                uris.append(uri)
                client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "yaml", 1, text)))
                await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
            await talk(client, *uris)
            await client.shutdown_session()
            await client.stop()
        except BaseException:
            client._server.kill()  # a test that failed does not wait for it
            raise

    asyncio.run(asyncio.wait_for(session(), 60))
