"""What can be proven about a policy: certificates, and a verifier that computes them again.

Bounds on what is lost, the error bounds on the arithmetic behind them, and the verifier.
"""

from bellweight.certificates.certificate import Certificate
from bellweight.certificates.certifying import certify
from bellweight.certificates.path_program import path_bound
from bellweight.certificates.pia_bounds import PiaBounds, pia_bounds
from bellweight.certificates.proven_gap import found_gap
from bellweight.certificates.relaxation import RelaxedBound, relaxed_bound
from bellweight.certificates.verification import Verification, verify

__all__ = [
    "Certificate",
    "PiaBounds",
    "RelaxedBound",
    "Verification",
    "certify",
    "found_gap",
    "path_bound",
    "pia_bounds",
    "relaxed_bound",
    "verify",
]
