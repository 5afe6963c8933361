"""Jolokia's policy for casstat, which allows reading only."""

from pathlib import Path

FILE = Path(__file__).with_name("jolokia-access.xml")
"""The policy; it has the name that Jolokia's documentation uses."""
PRINT = ("attach", "--print-policy")
"""The arguments with which casstat prints the policy."""


def policy_option(path: Path | str) -> str:
    """Return the option that makes Jolokia's agent load the policy at `path`."""
    return f"policyLocation=file://{path}"
