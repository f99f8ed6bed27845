"""Bellweight: good policies for Markov decision processes too large to solve exactly.

It solves the approximate linear program, chooses the state-relevance weights by itself, and says
how far from optimal the policy can be. Discounted, infinite-horizon, costs minimised.
"""

from bellweight import contraction, exact, problems, testing
from bellweight.auto import Auto, Candidate
from bellweight.basis import (
    Affine,
    Basis,
    Custom,
    Fourier,
    Hinge,
    Indicator,
    Located,
    PiecewiseLinear,
    Polynomial,
    Product,
    Radial,
    Separable,
    Spot,
    Stacked,
)
from bellweight.bench import Iterate
from bellweight.certificate import Certificate, certify
from bellweight.enrichment import Enriched, Enrichment, Growth
from bellweight.evaluate import Comparison, Difference, Evaluation, compare, compare_ties, evaluate
from bellweight.judging import Judgement
from bellweight.league import League
from bellweight.models import (
    EventModel,
    Geometric,
    Independent,
    Kernels,
    Law,
    LinearBuilder,
    LinearModel,
    Sampled,
    TabularModel,
    certain,
    poisson,
    uniform,
)
from bellweight.occupancy import Simulation
from bellweight.plan import Order, Plan
from bellweight.policy import (
    DualPolicy,
    DualSoftmax,
    Greedy,
    Policy,
    Rule,
    Support,
    Table,
    Uniform,
)
from bellweight.pricing import PricedRows
from bellweight.probe import Probe, weights_matter
from bellweight.racing import Race, Standing, race
from bellweight.relatives import Guided, Maximum, PointwiseMaximum, SelfGuided, SmoothedALP
from bellweight.report import report
from bellweight.resampling import Resampled, Resampling
from bellweight.rows import AllRows, SampledRows
from bellweight.selection import Iteration, Method, Stop
from bellweight.sensitivity import Sensitivity, Setting, sensitivity
from bellweight.simulate import sample_states
from bellweight.solve import Phase, Result, solve
from bellweight.status import (
    ArgumentError,
    BasisError,
    BellweightError,
    BellweightWarning,
    FileError,
    ModelError,
    PolicyError,
    SolverError,
    Status,
    WorkerError,
)
from bellweight.steps import Adaptive, Anderson, Steps
from bellweight.theory import PiaBounds, pia_bounds
from bellweight.verification import Verification, verify
from bellweight.weights import DIA, PIA, Fixed, FromPolicy, Iterative

__version__ = "0.1.0"

__all__ = [
    "DIA",
    "PIA",
    "Adaptive",
    "Affine",
    "AllRows",
    "Anderson",
    "ArgumentError",
    "Auto",
    "Basis",
    "BasisError",
    "BellweightError",
    "BellweightWarning",
    "Candidate",
    "Certificate",
    "Comparison",
    "Custom",
    "Difference",
    "DualPolicy",
    "DualSoftmax",
    "Enriched",
    "Enrichment",
    "Evaluation",
    "EventModel",
    "FileError",
    "Fixed",
    "Fourier",
    "FromPolicy",
    "Geometric",
    "Greedy",
    "Growth",
    "Guided",
    "Hinge",
    "Independent",
    "Indicator",
    "Iterate",
    "Iteration",
    "Iterative",
    "Judgement",
    "Kernels",
    "Law",
    "League",
    "LinearBuilder",
    "LinearModel",
    "Located",
    "Maximum",
    "Method",
    "ModelError",
    "Order",
    "Phase",
    "PiaBounds",
    "PiecewiseLinear",
    "Plan",
    "PointwiseMaximum",
    "Policy",
    "PolicyError",
    "Polynomial",
    "PricedRows",
    "Probe",
    "Product",
    "Race",
    "Radial",
    "Resampled",
    "Resampling",
    "Result",
    "Rule",
    "Sampled",
    "SampledRows",
    "SelfGuided",
    "Sensitivity",
    "Separable",
    "Setting",
    "Simulation",
    "SmoothedALP",
    "SolverError",
    "Spot",
    "Stacked",
    "Standing",
    "Status",
    "Steps",
    "Stop",
    "Support",
    "Table",
    "TabularModel",
    "Uniform",
    "Verification",
    "WorkerError",
    "certain",
    "certify",
    "compare",
    "compare_ties",
    "contraction",
    "evaluate",
    "exact",
    "pia_bounds",
    "poisson",
    "problems",
    "race",
    "report",
    "sample_states",
    "sensitivity",
    "solve",
    "testing",
    "uniform",
    "verify",
    "weights_matter",
]
