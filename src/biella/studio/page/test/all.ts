// All unit tests of the page; build.py --check runs them with node's own runner.

import "./buffer";
import "./trigger";
import "./spectrum";
import "./lanes";
import "./format";
import "./protocol";
import "./recording";
import "./export";
import "./storage";
import "./port";
import "./access";
import "./turns";
import "./arrows";
import "./arguments";
import "./trail";
import "./palette";
