"""A cluster whose connections are encrypted, with certificates made here: work, and parts of a netlist."""

import importlib
import shutil
import subprocess

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.api.run_netlist import run_netlist
from buda_emu.app.api.sweep import sweep
from buda_emu.emulator.distributed.part import dask_contexts
from buda_emu.support.errors import HostError
from buda_emu.support.workers.job import Workers
from shared_files import ROOT

distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
dask = importlib.import_module("dask")  # distributed needs it
pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def certificates(folder):
    """An authority, and a certificate of it for this machine."""

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    openssl("req", "-x509", *KEY, "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem")
    openssl("req", *KEY, "-subj", "/CN=localhost", "-keyout", "node.key", "-out", "node.csr")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
    openssl(
        "x509",
        "-req",
        "-in",
        "node.csr",
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-days",
        "2",
        "-out",
        "node.pem",
        "-extfile",
        "names",
    )


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A configuration of Dask with certificates."""
    folder = tmp_path_factory.mktemp("certificates")
    certificates(folder)
    ends = {"cert": str(folder / "node.pem"), "key": str(folder / "node.key")}
    return {
        "distributed.comm.require-encryption": True,
        "distributed.comm.tls.ca-file": str(folder / "ca.pem"),
        **{
            f"distributed.comm.tls.{role}.{name}": path
            for role in ("scheduler", "worker", "client")
            for name, path in ends.items()
        },
    }


@pytest.fixture(scope="module")
def address(words):
    """An encrypted cluster of two workers, whose processes have the configuration from their environment."""
    with dask.config.set(words), pytest.MonkeyPatch.context() as patch:
        for name, value in words.items():
            patch.setenv("DASK_" + name.upper().replace(".", "__").replace("-", "_"), str(value))
        quiet = {"dashboard_address": ":0", "scheduler_kwargs": {"dashboard": False}}
        with distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            protocol="tls",
            security=distributed.Security(),
            **quiet,
        ) as cluster:
            yield cluster.scheduler_address


def test_work_is_shared_out(address):
    assert address.startswith("tls://")
    path, axes = str(ROOT / "netlists/attention.yaml"), {"noc_bytes": ("0.5", "1", "2")}
    assert sweep(path, axes) == sweep(path, axes, dask=address)


def test_a_netlist_in_parts(address):
    netlist = be.load(str(ROOT / "netlists/two_chips.yaml"))
    alone = run_netlist(netlist, precision="device").arrays
    shared = run_netlist(netlist, precision="device", workers=Workers(dask=address)).arrays
    assert all(np.array_equal(array, shared[name]) for name, array in alone.items())


def test_who_has_no_certificates_is_told_so(address):
    with dask.config.set({"distributed.comm.tls.ca-file": None}), pytest.raises(HostError) as caught:
        run_netlist(be.load(str(ROOT / "netlists/two_chips.yaml")), workers=Workers(dask=address))
    assert f"--dask {address}: " in str(caught.value)
    assert "TLS" in str(caught.value) or "ncrypt" in str(caught.value)


def test_a_worker_without_certificates_says_which(words):
    """It may have them by options of `dask worker`, which its child processes do not see."""
    for missing in ("ca-file", "worker.cert"):
        config = {**words, f"distributed.comm.tls.{missing}": None}
        with dask.config.set(config), pytest.raises(HostError, match=r"no certificates of a worker: .*worker\.cert"):
            dask_contexts("worker")
