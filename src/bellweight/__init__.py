"""Bellweight: good policies for Markov decision processes too large to solve exactly.

It solves the approximate linear program, chooses the state-relevance weights by itself, and says
how far from optimal the policy can be. Discounted, infinite-horizon, costs minimised.
"""

from bellweight import exact, problems, testing
from bellweight.analysis import contraction
from bellweight.analysis.sensitivity import Sensitivity, Setting, sensitivity
from bellweight.analysis.weights_matter import Probe, weights_matter
from bellweight.backends.setup import Iterate
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
from bellweight.certificates.certificate import Certificate, certify
from bellweight.certificates.pia_bounds import PiaBounds, pia_bounds
from bellweight.certificates.verification import Verification, verify
from bellweight.common.status import (
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
from bellweight.evaluation.evaluate import (
    Comparison,
    Difference,
    Evaluation,
    compare,
    compare_ties,
    evaluate,
)
from bellweight.evaluation.race import Race, Standing, race
from bellweight.models import (
    EventModel,
    Geometric,
    Independent,
    Kernels,
    Law,
    LinearBuilder,
    LinearModel,
    Sampled,
    StepModel,
    TabularModel,
    certain,
    poisson,
    uniform,
)
from bellweight.plans.auto import Auto, Candidate
from bellweight.plans.enrichment import Enriched, Enrichment, Growth
from bellweight.plans.race_result import RaceResult
from bellweight.plans.relatives import Guided, Maximum, PointwiseMaximum, SelfGuided, SmoothedALP
from bellweight.plans.resampling import Resampled, Resampling
from bellweight.policies.policy import (
    DualPolicy,
    DualSoftmax,
    Greedy,
    Policy,
    Rule,
    Support,
    Table,
    Uniform,
)
from bellweight.program.priced_rows import PricedRows
from bellweight.program.rows import AllRows, SampledRows
from bellweight.report import report
from bellweight.results.judgement import Judgement
from bellweight.simulation.episodes import sample_states
from bellweight.simulation.occupancy import Simulation
from bellweight.solve import Phase, Result, solve
from bellweight.weights.loop import Iteration, Method, Stop
from bellweight.weights.methods import DIA, PIA, Fixed, FromPolicy, Iterative
from bellweight.weights.plan import Plan, SolveSettings
from bellweight.weights.steps import Adaptive, Anderson, Steps

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
    "LinearBuilder",
    "LinearModel",
    "Located",
    "Maximum",
    "Method",
    "ModelError",
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
    "RaceResult",
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
    "SolveSettings",
    "SolverError",
    "Spot",
    "Stacked",
    "Standing",
    "Status",
    "StepModel",
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
