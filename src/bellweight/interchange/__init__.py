"""Models and policies from and to other packages and file formats.

One file for each package or format; what they share is in `assembly.py`. Packages of others are
imported only when they are asked for, and a missing one is an error that names the extra to
install.
"""

from bellweight.interchange.by_ending import read_model, write_model
from bellweight.interchange.csv_files import read_csv, write_csv
from bellweight.interchange.drn import read_drn, write_drn
from bellweight.interchange.frames import from_frame, to_frame
from bellweight.interchange.gymnasium import from_gymnasium, policy_for_gymnasium, to_gymnasium
from bellweight.interchange.policies import policy_frame, read_policy, write_policy
from bellweight.interchange.prism import read_prism, write_prism
from bellweight.interchange.quantecon import from_quantecon, to_quantecon
from bellweight.interchange.toolbox import from_toolbox, to_toolbox

__all__ = [
    "from_frame",
    "from_gymnasium",
    "from_quantecon",
    "from_toolbox",
    "policy_for_gymnasium",
    "policy_frame",
    "read_csv",
    "read_drn",
    "read_model",
    "read_policy",
    "read_prism",
    "to_frame",
    "to_gymnasium",
    "to_quantecon",
    "to_toolbox",
    "write_csv",
    "write_drn",
    "write_model",
    "write_policy",
    "write_prism",
]
