"""Flower's settings: it only displays, and only with the password.

FIXLOOP_FLOWER_AUTH       `user:password`; without it a password is generated for this run and printed
FIXLOOP_FLOWER_ADDRESS    the address to listen on, this machine's loopback by default
"""

import os
import secrets
import sys

from flower.inspector import Inspector
from flower.views.monitor import Metrics
from tornado.web import authenticated

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


address = os.environ.get("FIXLOOP_FLOWER_ADDRESS") or "127.0.0.1"
port = 5555

credentials = os.environ.get("FIXLOOP_FLOWER_AUTH", "")
user, _, password = credentials.partition(":")
if credentials and not (user and password and credentials.isascii()):
    sys.exit("FIXLOOP_FLOWER_AUTH is not of the form user:password, in ASCII")
if not credentials:
    if address not in _LOOPBACK:
        sys.exit(f"Flower would listen on {address} without your password; set FIXLOOP_FLOWER_AUTH")
    credentials = f"fixloop:{secrets.token_urlsafe(12)}"
    print("Flower: log in as {} with {}".format(*credentials.split(":")), file=sys.stderr, flush=True)
basic_auth = [credentials]

# Names of workers, tasks and queues need the password; Flower itself shows them to anybody.
Metrics.get = authenticated(Metrics.get)

# Its buttons revoke tasks and stop workers behind the state's back; decisions have their own commands.
read_only = True

# Workers never show their settings, and would reject each request as not fixloop's.
Inspector.inspect_methods = tuple(method for method in Inspector.inspect_methods if method != "conf")

# The ticket is the task's id, and the arguments name workflow, specialist and iteration.
tasks_columns = "name,uuid,state,args,kwargs,received,started,runtime,worker,retries"
natural_time = False
max_tasks = 20_000
