// All unit tests of the page; build.py --check runs them with node's own runner.

import "./buffer";
import "./trigger";
import "./spectrum";
import "./lanes";
import "./format";
import "./protocol";
import "./recording";
import "./storage";
