"""When a look is kept for others, and when it is made anew."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

from spinney.web.stats_cache import DEAR_S, KEPT_S, SHARE, StatsCache


class Looks:
    """Looks that take a processor for as long as is said."""

    def __init__(self, takes_s: float) -> None:
        self.takes_s, self.made, self.now_s, self._spent_s = takes_s, 0, 0.0, 0.0
        self.stats_cache = StatsCache(monotonic=lambda: self.now_s, spent=lambda: self._spent_s)

    def look(self) -> int:
        self._spent_s += self.takes_s
        self.made += 1
        return self.made

    def get(self, topic: str = "tree:1", what: object = "all", *, anew: bool = False) -> int:
        return self.stats_cache.get(topic, what, self.look, anew=anew)


def test_given_a_cheap_look_then_it_is_made_each_time() -> None:
    looks = Looks(takes_s=DEAR_S / 2)

    assert [looks.get(), looks.get()] == [1, 2]


def test_given_a_dear_look_then_it_is_kept_for_some_times_what_it_took() -> None:
    looks = Looks(takes_s=DEAR_S * 2)

    assert [looks.get(), looks.get()] == [1, 1]
    looks.now_s = SHARE * DEAR_S * 2 - 0.01
    assert looks.get() == 1
    looks.now_s += 0.02
    assert looks.get() == 2


def test_given_a_very_dear_look_then_it_is_kept_no_longer_than_said() -> None:
    looks = Looks(takes_s=KEPT_S)

    looks.get()
    looks.now_s = KEPT_S

    assert looks.get() == 2


def test_given_others_may_see_other_things_then_they_get_a_look_of_their_own() -> None:
    looks = Looks(takes_s=1.0)

    assert [looks.get(what="all"), looks.get(what="birds"), looks.get(what="all")] == [1, 2, 1]


def test_when_a_change_is_told_then_nothing_from_before_is_given_and_other_topics_keep_theirs() -> None:
    looks = Looks(takes_s=1.0)
    looks.get("tree:1")
    looks.get("tree:2")

    looks.stats_cache.changed("tree:1")

    assert [looks.get("tree:1"), looks.get("tree:2")] == [3, 2]


def test_when_a_change_is_told_while_somebody_looks_then_his_look_is_not_kept() -> None:
    looks = Looks(takes_s=1.0)

    def overtaken() -> int:
        looks.stats_cache.changed("tree:1")
        return looks.look()

    assert looks.stats_cache.get("tree:1", "all", overtaken) == 1
    assert looks.get("tree:1") == 2


def test_when_somebody_looks_anew_then_others_get_what_he_saw() -> None:
    looks = Looks(takes_s=1.0)
    looks.get()

    assert [looks.get(anew=True), looks.get()] == [2, 2]


def test_given_two_ask_at_once_then_one_looks() -> None:
    looks, begun, go_on = Looks(takes_s=1.0), Event(), Event()

    def slow() -> int:
        begun.set()
        assert go_on.wait(10)
        return looks.look()

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(looks.stats_cache.get, "tree:1", "all", slow)
        assert begun.wait(10)
        second = pool.submit(looks.get)
        go_on.set()
        assert [first.result(10), second.result(10)] == [1, 1]
