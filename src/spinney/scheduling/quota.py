"""How many slots one share may hold in a queue with ``sharing="quota"``."""


def quota(slots: int, shares: int, turn: int = 1) -> int:
    """Return how many slots one share may hold at most when ``slots`` serve the queue and ``shares`` are active.

    ``turn``: how many it may hold in any case. The rule of the SNIG services monitor, bounded so that with two or more
    slots one always stays for a newcomer: ``max(1, min(S-1, max(turn, int(0.9*(1+S//n)))))``, n counted up to S.
    """
    active = max(1, min(shares, slots))
    return max(1, min(slots - 1, max(turn, int(0.9 * (1 + slots // active)))))
