"""Random numbers of known laws from uniform streams, inside compiled loops."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np

from bellweight.common.compiled import compiled, draw, episode_key, pick, unmanaged
from bellweight.models.kernels.layouts import EXPONENTIAL, FINITE, GAMMA, NORMAL

# A stream gives multiples of 2^-53 from 0 on, and some quantiles of 0 are infinite.
_HALF_STEP = 2.0**-54

# Wichura's algorithm AS 241 (Applied Statistics 37, 1988): about 16 digits.
_A = np.array([
    3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
    1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
    3.3430575583588128105e4, 2.5090809287301226727e3,
])  # fmt: skip
_B = np.array([
    1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
    2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
    5.2264952788528545610e3,
])  # fmt: skip
_C = np.array([
    1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
    3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
    2.27238449892691845833e-2, 7.74545014278341407640e-4,
])  # fmt: skip
_D = np.array([
    1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
    1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
    1.05075007164441684324e-9,
])  # fmt: skip
_E = np.array([
    6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
    2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
    2.71155556874348757815e-5, 2.01033439929228813265e-7,
])  # fmt: skip
_F = np.array([
    1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
    7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
    2.04426310338993978564e-15,
])  # fmt: skip


@unmanaged
def _ratio(x, above, below):
    top, bottom = 0.0, 0.0
    for k in range(len(above) - 1, -1, -1):
        top = top * x + above[k]
        bottom = bottom * x + below[k]
    return top / bottom


@unmanaged
def normal_quantile(p):
    """Return the point below which the standard normal law has mass p."""
    q = p - 0.5
    if abs(q) <= 0.425:
        return q * _ratio(0.180625 - q * q, _A, _B)
    r = np.sqrt(-np.log(min(p, 1.0 - p)))
    size = _ratio(r - 1.6, _C, _D) if r <= 5.0 else _ratio(r - 5.0, _E, _F)
    return size if q > 0.0 else -size


@unmanaged
def gamma_draw(key, shape):
    """Return a gamma number of scale one, by the rejection of Marsaglia and Tsang (2000)."""
    place, factor = 0, 1.0
    if shape < 1.0:
        factor = (draw(key, 0) + _HALF_STEP) ** (1.0 / shape)
        place, shape = 1, shape + 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    while True:
        x = normal_quantile(draw(key, place) + _HALF_STEP)
        u = draw(key, place + 1) + _HALF_STEP
        place += 2
        v = (1.0 + c * x) ** 3
        if v > 0.0 and np.log(u) < 0.5 * x * x + d - d * v + d * np.log(v):
            return factor * d * v


@unmanaged
def fill_noise(key, step, laws, noise):
    """Write the random numbers (m,) of a step of a stream."""
    n = len(laws.kind)
    for j in range(n):
        kind, place = laws.kind[j], step * n + j
        if kind == GAMMA:
            noise[j] = laws.second[j] * gamma_draw(episode_key(key, place), laws.first[j])
            continue
        u = draw(key, place)
        if kind == FINITE:
            noise[j] = laws.values[pick(u, laws.sums, laws.start[j], laws.start[j + 1])]
        elif kind == NORMAL:
            p = laws.below[j] + (u + _HALF_STEP) * (laws.above[j] - laws.below[j])
            drawn = laws.first[j] + laws.second[j] * normal_quantile(p)
            noise[j] = min(max(drawn, laws.low[j]), laws.high[j])
        elif kind == EXPONENTIAL:
            noise[j] = -laws.first[j] * np.log1p(-u)
        else:
            noise[j] = laws.first[j] + u * (laws.second[j] - laws.first[j])


@compiled
def fill_rows(drawn, key, laws):
    """Write draws of independent laws into each row of an array (n, m)."""
    for row in range(len(drawn)):
        fill_noise(episode_key(key, row), 0, laws, drawn[row])


@compiled
def episode_keys(base, first, n):
    """Return the keys (n,) of the streams of episodes from `first` on."""
    keys = np.zeros(n, dtype=np.uint64)
    for row in range(n):
        keys[row] = episode_key(base, first + row)
    return keys


@compiled
def fill_finite(drawn, keys, step, starts, values, sums):
    """Write a vector of independent finite laws for each stream, from its numbers of a step."""
    k = drawn.shape[1]
    for row in range(drawn.shape[0]):
        for j in range(k):
            u = draw(keys[row], step * k + j)
            drawn[row, j] = values[pick(u, sums, starts[j], starts[j + 1])]
