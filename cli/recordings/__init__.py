"""The parts that commands on recordings share: arguments, merging and shipping."""
