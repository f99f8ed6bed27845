"""Rows of tables to twice the digits, compiled. Importing this file loads Numba.

Every step is that of `common/doubled.py`, in the same order, so results are the same to the last
bit as those of whole arrays; a few rows take a tenth of the time.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from bellweight.common.compiled import inlined, unmanaged

_SPLIT = 134217729.0  # 2^27 + 1 cuts a double into two halves


@inlined
def ordered_sum(a, b):
    total = a + b
    return total, b - (total - a)


@inlined
def sum_of(a_high, a_low, b_high, b_low):
    total = a_high + b_high
    part = total - a_high
    error = (a_high - (total - part)) + (b_high - part)
    return ordered_sum(total, error + (a_low + b_low))


@inlined
def product_of(a_high, a_low, b):
    result = a_high * b
    large, other = _SPLIT * a_high, _SPLIT * b
    one, two = large - (large - a_high), other - (other - b)
    rest, left = a_high - one, b - two
    error = ((one * two - result) + one * left + rest * two) + rest * left
    return ordered_sum(result, error + a_low * b)


@unmanaged
def exact_table_rows(counts, chances, after, here, discount, scratch, high, low):
    """Write phi(x) - discount E[phi(next)] (n, K) of pairs with `counts` (n,) successors each.

    Their chances follow each other, with the features (m, K) of the successors; `here` (n, K) are
    those of the states. A sum adds neighbours in pairs until one number is left.
    """
    sums, lows = scratch[0], scratch[1]
    first = 0
    for n in range(len(counts)):
        for k in range(here.shape[1]):
            sums[0], lows[0] = 0.0, 0.0
            left = counts[n]
            for j in range(left):
                chance, rest = product_of(chances[first + j], 0.0, discount)
                sums[j], lows[j] = product_of(chance, rest, after[first + j, k])
            while left > 1:
                for j in range(left // 2):
                    sums[j], lows[j] = sum_of(
                        sums[2 * j], lows[2 * j], sums[2 * j + 1], lows[2 * j + 1]
                    )
                if left % 2:
                    sums[left // 2], lows[left // 2] = sums[left - 1], lows[left - 1]
                left = (left + 1) // 2
            high[n, k], low[n, k] = sum_of(here[n, k], 0.0, -sums[0], -lows[0])
        first += counts[n]
