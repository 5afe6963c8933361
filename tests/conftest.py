"""What all tests stand on."""

import signal

# A suite that runs in the background is started with SIGINT ignored, and would hand that on to every program it ends
# by Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
