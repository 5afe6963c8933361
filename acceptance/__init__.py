"""Acceptance scripts: long checks against real servers, started manually with `make acceptance-NAME`.

Each script is a module whose `main()` prints its figures and exits with status 1 if a check fails. The scripts are not
part of the test suite because they take too long or need a server that the suite does not install.
"""
