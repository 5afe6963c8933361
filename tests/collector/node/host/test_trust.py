"""Whom casstat trusts: processes by their user, listeners by their socket's owner, files by who may change them."""

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from collector.node.host.cassandra_processes import DAEMON, UNKNOWN_ID, NodeFacts, local_nodes, local_pid, trusted_nodes
from collector.node.host.kernel_files import read_text
from collector.node.host.trust import (
    UnknownUserError,
    file_problem,
    files_problem,
    listener_problem,
    listening_users,
    trusted_users,
)
from tests.collector.node.host.process_tree import BOOT_S, ProcessTree

CASSANDRA, NOBODY = 777, 65534
JAR = "-javaagent:/opt/jolokia.jar"


@pytest.fixture
def tree(tmp_path: Path) -> ProcessTree:
    return ProcessTree(tmp_path / "proc")


# Processes


def test_each_process_has_its_user(tree: ProcessTree) -> None:
    tree.add(1, 0, ["init"])
    tree.add(7, CASSANDRA, ["java", DAEMON])
    tree.add(8, NOBODY, ["sh", JAR, DAEMON])
    nodes = {node.pid: node for node in local_nodes(tree.folder)}
    assert {pid: (node.uid, node.gid) for pid, node in nodes.items()} == {7: (CASSANDRA,) * 2, 8: (NOBODY,) * 2}
    assert [node.pid for node in trusted_nodes(nodes.values(), {0, CASSANDRA}, tree.net)] == [7]
    assert nodes[7].started_s == BOOT_S + 10


def test_an_older_imitation_with_jolokia_neither_hides_nor_replaces_the_node(tree: ProcessTree) -> None:
    tree.add(7, CASSANDRA, ["java", DAEMON], start_s=100)
    for pid in range(100, 150):
        tree.add(pid, NOBODY, ["sh", f"{JAR}=port=8778", "-Dcassandra.jmx.local.port=7199", DAEMON], start_s=1)
    nodes = local_nodes(tree.folder)
    assert [node.pid for node in trusted_nodes(nodes, {CASSANDRA})] == [7]
    facts = NodeFacts(jvm="7@elsewhere", started_ms=1000 * (BOOT_S + 1))
    assert local_pid(facts, trusted_nodes(nodes, {CASSANDRA})) is None


def test_a_program_that_runs_as_root_for_another_user_is_not_trusted(tree: ProcessTree) -> None:
    tree.add(7, NOBODY, ["ping", DAEMON], effective=0)
    tree.add(8, 0, ["sudo", DAEMON])
    tree.make_setuid(8)
    assert {node.uid for node in local_nodes(tree.folder)} == {UNKNOWN_ID}
    assert trusted_nodes(local_nodes(tree.folder), {0, NOBODY}) == []


def test_a_process_that_changes_while_it_is_examined_is_not_trusted(
    tree: ProcessTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.add(7, NOBODY, ["sh", DAEMON])
    commands = 0

    def reading(path: Path, *limit: int) -> str:
        nonlocal commands
        text = read_text(path, *limit)
        commands += path.name == "cmdline"
        if commands == 2 and path.name == "cmdline":
            tree.set_user(7, 0)
        return text

    monkeypatch.setattr("collector.node.host.cassandra_processes.read_text", reading)
    assert [node.uid for node in local_nodes(tree.folder)] == [UNKNOWN_ID]


def test_files_that_another_user_names_are_not_opened(tree: ProcessTree, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "cassandra.yaml")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/nodetool").touch(0o755)
    tree.add(7, NOBODY, ["sh", f"-Dcassandra.config={tmp_path}/cassandra.yaml", "-cp", f"{tmp_path}/conf", DAEMON])
    (node,) = local_nodes(tree.folder)
    assert (node.nodetool, node.directories) == (None, ())
    # Not even a trusted user's named pipe blocks.
    (trusted,) = trusted_nodes([node], {NOBODY})
    assert (trusted.nodetool, trusted.directories) == (tmp_path / "bin/nodetool", ())


def test_a_huge_or_odd_command_line_costs_little(tree: ProcessTree) -> None:
    tree.add(7, NOBODY, [DAEMON, "-javaagent:" + "jolokia" * 200_000, "-D\x1b[2J\n", "\xff"])
    (node,) = local_nodes(tree.folder)
    assert (node.url, node.jmx_port) == ("", None)
    assert sum(map(len, node.command)) < 400_000


def test_of_several_trusted_nodes_the_one_that_really_listens_comes_first(tree: ProcessTree) -> None:
    tree.add(7, 0, ["java", f"{JAR}=port=8001", DAEMON], start_s=1)
    tree.add(8, CASSANDRA, ["java", "-Dcassandra.jmx.local.port=7199", DAEMON], start_s=50)
    tree.listen("127.0.0.1", 8001, NOBODY)
    tree.listen("127.0.0.1", 7199, CASSANDRA)
    assert [node.pid for node in trusted_nodes(local_nodes(tree.folder), {0, CASSANDRA}, tree.net)] == [8, 7]


def test_an_untrusted_process_is_the_node_only_if_it_cannot_be_confused(tree: ProcessTree) -> None:
    tree.add(7, 999, ["java", DAEMON], start_s=100)
    facts = NodeFacts(jvm="1@container", started_ms=1000 * (BOOT_S + 100))
    assert local_pid(facts, (), local_nodes(tree.folder)) == 7
    tree.add(8, NOBODY, ["sh", DAEMON], start_s=100)
    others = local_nodes(tree.folder)
    assert local_pid(facts, (), others) is None
    assert local_pid(facts, [replace(others[0], pid=9, uid=0)], others) == 9


# Users


def test_root_casstats_own_user_and_named_users_are_trusted() -> None:
    assert {0, os.geteuid()} <= trusted_users()
    assert NOBODY not in trusted_users()
    assert NOBODY in trusted_users(["nobody"])
    assert 4242 in trusted_users(["4242"])
    for name in ("no such user", "", "-1", "²"):
        with pytest.raises(UnknownUserError, match="is not a user of this machine"):
            trusted_users([name])


# Listeners


@pytest.mark.parametrize(
    "listening",
    ["127.0.0.1", "0.0.0.0", "::", "::ffff:127.0.0.1"],
)
@pytest.mark.parametrize("asked", ["127.0.0.1", "::ffff:127.0.0.1"])
def test_the_listener_of_an_address_has_its_user(listening: str, asked: str, tree: ProcessTree) -> None:
    tree.listen(listening, 8778, CASSANDRA)
    tree.listen("127.0.0.2", 8778, NOBODY)
    tree.listen("127.0.0.1", 8779, NOBODY)
    tree.connect(8778, NOBODY)
    assert listening_users(asked, 8778, tree.net) == {CASSANDRA}
    assert listener_problem(asked, 8778, {CASSANDRA}, tree.net) == ""
    assert "it belongs to user 777, not to root" in listener_problem(asked, 8778, {0}, tree.net)


def test_a_second_listener_at_all_addresses_is_noticed(tree: ProcessTree) -> None:
    tree.listen("::1", 8778, CASSANDRA)
    tree.listen("::", 8778, NOBODY)
    assert listening_users("::1%lo", 8778, tree.net) == {CASSANDRA, NOBODY}
    assert listener_problem("::1", 8778, {CASSANDRA}, tree.net) == "it belongs to user nobody, not to 777"


def test_what_the_socket_table_does_not_show_is_not_trusted(tree: ProcessTree) -> None:
    assert "does not contain it" in listener_problem("127.0.0.1", 8778, {0}, tree.net)
    assert "does not contain it" in listener_problem("127.0.0.1", 8778, {0}, tree.net / "nosuch")
    (tree.net / "tcp").write_text("odd\n\0\n 1: zz:1 0 0A\n")
    assert "does not contain it" in listener_problem("127.0.0.1", 8778, {0}, tree.net)


def test_a_listener_on_another_machine_is_not_trusted(tree: ProcessTree) -> None:
    tree.listen("0.0.0.0", 8778, 0)
    assert listener_problem("192.0.2.1", 8778, {0}, tree.net) == "it is not an address of this machine"


# Files


def test_a_file_that_only_trusted_users_can_change_is_used(tmp_path: Path) -> None:
    tool = tmp_path / "bin/nodetool"
    tool.parent.mkdir()
    tool.touch(0o755)
    (tmp_path / "link").symlink_to("bin/../bin")
    users = {0, os.geteuid()}
    assert file_problem(tool, users) == ""
    assert file_problem(tmp_path / "link/nodetool", users) == ""


@pytest.mark.parametrize("changed", ["", "bin", "bin/nodetool"])
@pytest.mark.parametrize("mode", [0o757, 0o777])
def test_a_file_that_others_can_change_is_not_used(changed: str, mode: int, tmp_path: Path) -> None:
    tool = tmp_path / "bin/nodetool"
    tool.parent.mkdir()
    tool.touch(0o755)
    (tmp_path / changed).chmod(mode)
    assert "other users can write to" in file_problem(tool, {0, os.geteuid()})
    outside = tmp_path.parent / f"{tmp_path.name}-link"
    outside.symlink_to(tool)
    assert "other users can write to" in file_problem(outside, {0, os.geteuid()})


@pytest.mark.parametrize(
    ("members", "primary", "is_used"),
    [([], 0, True), (["root"], 0, True), (["nobody"], 0, False), ([], NOBODY, False)],
)
def test_a_file_that_a_group_can_change_is_used_if_the_group_has_no_other_members(
    members: list[str], primary: int, is_used: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nodetool"
    tool.touch(0o755)
    tool.chmod(0o775)
    group = tool.stat().st_gid
    monkeypatch.setattr("grp.getgrgid", lambda _: SimpleNamespace(gr_mem=members))
    monkeypatch.setattr("pwd.getpwall", lambda: [SimpleNamespace(pw_uid=primary, pw_gid=group)])
    assert (file_problem(tool, {0, os.geteuid()}) == "") == is_used


def test_a_group_that_is_the_limit_of_an_access_list_has_other_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nodetool"
    tool.touch(0o755)
    tool.chmod(0o775)
    monkeypatch.setattr("grp.getgrgid", lambda _: SimpleNamespace(gr_mem=[]))
    monkeypatch.setattr("pwd.getpwall", list)
    assert file_problem(tool, {0, os.geteuid()}) == ""
    monkeypatch.setattr("os.listxattr", lambda *_, **__: ["system.posix_acl_access"])
    assert "other users can write to" in file_problem(tool, {0, os.geteuid()})


def test_a_file_or_link_of_another_user_is_not_used(tmp_path: Path) -> None:
    tool = tmp_path / "nodetool"
    tool.touch(0o755)
    assert "belongs to another user" in file_problem(tool, {os.geteuid() + 1})
    assert "No such file" in file_problem(tmp_path / "nosuch", {0, os.geteuid()})
    (tmp_path / "loop").symlink_to("loop")
    assert "too many symbolic links" in file_problem(tmp_path / "loop", {0, os.geteuid()})


def test_the_members_of_a_group_are_listed_once_for_all_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listings: list[int] = []

    def listed() -> list[object]:
        listings.append(1)
        return []

    monkeypatch.setattr("grp.getgrgid", lambda _: SimpleNamespace(gr_mem=[]))
    monkeypatch.setattr("pwd.getpwall", listed)
    jars = [tmp_path / f"{number}.jar" for number in range(3)]
    for jar in jars:
        jar.touch()
        jar.chmod(0o664)
    assert files_problem(jars, {0, os.geteuid()}) == ""
    assert len(listings) == 1
