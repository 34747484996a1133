"""`buda-emu faults`: inject thousands of single faults, and report the effect of each on the outputs."""

import argparse
import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np

from buda_emu.app.api.faults import Budget, Maker, Settings, Subject, campaign_identity, faults, read_sites
from buda_emu.app.cli.output import Progress, say, say_lines, write_json, write_printable, write_text
from buda_emu.app.cli.shared_arguments import read_options, record_of
from buda_emu.emulator.image.opened import netlist_of
from buda_emu.emulator.inputs.entries import select_programs
from buda_emu.emulator.options import Machine, Memory, SharedWork, gather_parameters
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.program.parameters import with_declared_names
from buda_emu.report.terminal.faults import campaign_lines, effect_lines
from buda_emu.support.columns import csv_text
from buda_emu.support.errors import Exit, HostError
from buda_emu.support.files import write_file
from buda_emu.support.output_places import make_folder
from buda_emu.testing.injection.campaign_log import CampaignLog, UnknownEffectError
from buda_emu.testing.injection.result import Campaign


def main(args: argparse.Namespace) -> int:
    """Run a campaign, or replay one fault. Exit code 0, or 130 if Ctrl-C ended it; the results up to then are
    written."""
    settings = _campaign_settings(args)
    subject = record_of(
        Subject,
        args,
        path=args.file,
        programs=tuple(args.program),
        parameters=tuple(gather_parameters(args.param).items()),
        machine=Machine(**read_options(args, Memory)),
    )
    if args.replay is not None:
        return _replay(subject, settings, args)
    subject = subject.with_contents()
    netlist = netlist_of(args.file, args.arch)
    campaign = _run_campaign(subject, settings, args)
    if not args.quiet:
        say_lines(campaign_lines(campaign, args.top))
    if args.output is not None:
        _write_files(args.output, campaign, netlist)
        if not args.quiet:
            say(f"report: {args.output / 'report.html'}")
    if args.write_sites is not None:
        write_printable(
            args.write_sites, "".join(f"{json.dumps(effect.fault.as_json())}\n" for effect in campaign.effects)
        )
    if args.json is not None:
        write_json(args.json, campaign.as_json())
    if not campaign.finished and args.seconds is None:
        return Exit.INTERRUPTED
    return Exit.OK


def _campaign_settings(args: argparse.Namespace) -> Settings:
    """Return the settings of the campaign that the command line states."""
    return record_of(
        Settings,
        args,
        kinds=_split_list(args.kind),
        places=_split_list(args.place),
        burst=args.bits,
        least_pcc=args.pcc,
        top1=args.top_1,
        strata=args.stratify,
        protect=_split_list(args.protect),
        given=() if args.sites is None else read_sites(args.sites),
    )


def _run_campaign(subject: Subject, settings: Settings, args: argparse.Namespace) -> Campaign:
    """Run the campaign, with progress. If an output folder has the log of an interrupted campaign, that one is
    continued, so that no fault is computed twice. Raises HostError for a log of another campaign."""
    log = None
    if args.output is not None:
        log = CampaignLog(args.output, campaign_identity(subject, settings))
    try:
        with Progress(args.quiet) as progress:
            return faults(
                subject,
                Budget(args.count, args.seconds, args.width),
                settings=settings,
                known=log.known if log is not None else (),
                done=log.append if log is not None else None,
                progress=lambda done, count, took: progress.bar(done, count, took, "faults"),
                **read_options(args, SharedWork),
            )
    except UnknownEffectError as error:
        if log is None:
            raise
        raise log.locate(error) from None


def _split_list(text: str) -> tuple[Any, ...]:
    """Split a text at its commas; () for "". Unknown words stay, since `faults` refuses them."""
    return tuple(filter(None, text.split(",")))


def _replay(subject: Subject, settings: Settings, args: argparse.Namespace) -> int:
    """Inject the fault of --replay alone and print its effect, then write a script that makes it in the debugger into
    the folder of -o, and print how to use it. Returns exit code 0."""
    bench = Maker(subject, settings)()
    say_lines(effect_lines(bench.effect(args.replay)))
    try:
        steps = bench.in_debugger(args.replay)
    except HostError as error:
        say(f"  in the debugger: {error}")
        return Exit.OK
    folder: Path = args.output or Path()
    if args.output is None:
        say("  in the debugger: give -o DIR, which gets the value that the fault makes")
        return Exit.OK
    file = folder / f"fault-{args.replay}.npy"
    make_folder(folder)
    write_file(file, lambda stream: _save_array(stream, steps.values))
    script = folder / f"fault-{args.replay}.txt"
    write_text(script, "".join(f"{command}\n" for command in steps.commands(str(file))))
    command = _debug_command(subject, bench.trace.netlist, script)
    if args.inputs:
        command += f" --inputs DIR (the arrays of {args.inputs} as .npy files)"
    say(f"  in the debugger: {command}")
    return Exit.OK


def _debug_command(subject: Subject, netlist: Netlist, script: Path) -> str:
    """Return the command that debugs the run of a campaign with a script, to be pasted into a shell. It names those
    parameters that the programs take."""
    words = ["buda-emu", "debug", subject.path, "--precision", subject.precision]
    programs = select_programs(netlist, subject.programs)
    for name, value in with_declared_names(programs, dict(subject.parameters)).items():
        words += ["--param", f"{name.removeprefix('$')}={value}"]
    for name in subject.programs:
        words += ["--program", name]
    if subject.arch:
        words += ["--arch", subject.arch]
    return shlex.join([*words, "-x", str(script)])


def _save_array(stream: Any, values: Any) -> None:
    """Write an array to the stream in the .npy format."""
    np.save(stream, values)


def _write_files(folder: Path, campaign: Campaign, netlist: Netlist) -> None:
    """Write faults.json, faults.csv and report.html into a folder."""
    from buda_emu.report.pages.faults import faults_page

    write_json(folder / "faults.json", campaign.as_json())
    rows = [effect.as_json() for effect in campaign.effects]
    write_printable(folder / "faults.csv", csv_text(rows) if rows else "")
    write_text(folder / "report.html", faults_page(campaign, netlist))
