"""What makes results comparable: the machine's processors, kernel and disks, as texts from /proc and /sys."""

from collections.abc import Iterator
from pathlib import Path

from collector.model.metric import Kind, Metric, Owner, Values
from collector.model.metric import ScrapeInterval as Interval
from collector.node.host.kernel_files import Host, text_in
from collector.node.host.process import cpu_numbers

# The part of /proc/cpuinfo that is read, because it has an entry for each of maybe hundreds of processors.
_CPUINFO_BYTES = 1 << 14
_TEXT_BYTES = 1 << 12
MAX_DISKS = 16


def _text(name: str, text: str) -> Metric:
    return Metric(f"casstat_machine_{name}", Kind.TEXT, "", text, (), Interval.SLOW, owner=Owner.MACHINE)


METRICS = (
    _text("processors", "Number of processors and their model, such as 8 x NAME."),
    _text("kernel", "Release of the kernel."),
    _text("disks", "Models of the disks below Cassandra's data directories."),
)
_PROCESSORS, _KERNEL, _DISKS = ((metric.name,) for metric in METRICS)


def read(host: Host) -> Values:
    """Read the texts; one whose file is missing is absent."""
    values: Values = {}
    if count := _online(text_in(host.root / "sys/devices/system/cpu/online", _TEXT_BYTES)):
        model = _model(text_in(host.proc / "cpuinfo", _CPUINFO_BYTES))
        values[_PROCESSORS] = f"{count} x {model}" if model else f"{count}"
    if release := text_in(host.proc / "sys/kernel/osrelease", _TEXT_BYTES):
        values[_KERNEL] = release
    models = {model for disk in host.disks for model in _disk_models(host.root / "sys/class/block" / disk)}
    if models:
        values[_DISKS] = ", ".join(sorted(models))
    return values


def _online(cpu_list: str) -> int:
    """Return the number of processors in a list such as `0-3,8`; 0 if it is malformed."""
    try:
        return len(cpu_numbers(cpu_list))
    except ValueError:
        return 0


def _model(cpuinfo: str) -> str:
    """Return the model of the first processor; "" if the kernel does not name it, as on most ARM machines."""
    fields = (line.partition(":") for line in cpuinfo.splitlines())
    return next((value.strip() for name, _, value in fields if name.strip() == "model name"), "")


def _disk_models(device: Path) -> Iterator[str]:
    """Yield the models of a disk, of the disk that contains a partition, or of the disks below a combined device."""
    try:
        path = device.resolve(strict=True)
        slaves = sorted((path / "slaves").iterdir())[:MAX_DISKS] if (path / "slaves").is_dir() else []
    except (OSError, RuntimeError):
        return
    for slave in slaves:
        yield from _disk_models(slave)
    for folder in (path, path.parent):
        if model := text_in(folder / "device" / "model", _TEXT_BYTES):
            yield model
            return
