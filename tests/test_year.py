"""The simulated year is the same for a seed, and its facts change and end as it says."""

from benchmarks.year import make_year


def test_a_seed_makes_the_same_year() -> None:
    """So that behaviours are compared on the same facts."""
    assert make_year(3, 0.1) == make_year(3, 0.1)
    assert make_year(3, 0.1) != make_year(4, 0.1)


def test_the_year_has_what_it_promises() -> None:
    """400 facts in 1,500 sessions: 120 change, half of them with cue words, and 60 end."""
    year = make_year(1, 1.0)
    assert (len(year.facts), year.sessions, len(year.remarks)) == (400, 1_500, 80)
    changed = [fact for fact in year.facts if fact.changed is not None]
    assert (len(changed), sum(fact.with_cue for fact in changed)) == (120, 60)
    assert sum(fact.ends is not None for fact in year.facts) == 60


def test_a_changed_fact_has_one_value_at_a_time() -> None:
    """The other one is stale."""
    fact = next(fact for fact in make_year(1, 1.0).facts if fact.changed is not None)
    assert fact.changed is not None
    assert (fact.value_at(fact.changed - 1), fact.value_at(fact.changed)) == tuple(fact.values)
    assert fact.stale_at(fact.changed) == [fact.values[0]]
