"""Which folder a job gets: never that of another one that is finished, and none twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from whitepool.sweeps.marker import Marker
from whitepool.sweeps.plan import Asked, changes, place

OLD, NEW = {"data": "1"}, {"data": "2"}
sources = st.sampled_from([OLD, NEW, {"data": None}, {}])
settings = st.sampled_from("abcd")
markers = st.one_of(st.none(), st.builds(Marker, settings, sources, finished=st.booleans()))


def asked(*jobs: str) -> list[Asked]:
    return [Asked(str(number), job, OLD) for number, job in enumerate(jobs)]


def test_a_job_is_known_by_its_key_and_not_by_its_number() -> None:
    there = {"0": Marker("a", OLD, finished=True), "1": Marker("b", OLD), "2": None}
    first, second, third = place(asked("c", "b", "a"), there, ["0", "1", "2"])
    assert (first.folder, first.finished, first.again) == ("3", False, False)
    assert (second.folder, second.finished, second.again) == ("1", False, True)
    assert (third.folder, third.finished, third.again) == ("0", True, False)


def test_a_job_whose_data_changed_leaves_the_old_one_alone() -> None:
    there = {"0": Marker("a", NEW, finished=True)}
    (job,) = place(asked("a"), there, ["0"])
    assert (job.folder, job.finished, job.beside, job.changed) == ("1", False, "0", ("data",))


def test_a_job_that_is_done_is_not_left_for_one_that_is_not() -> None:
    there = {"0": Marker("a", OLD), "1": Marker("a", OLD, finished=True)}
    (job,) = place(asked("a"), there, [])
    assert (job.folder, job.finished) == ("1", True)


def test_jobs_that_go_on_by_themselves_are_all_run_where_they_were() -> None:
    there = {"7": Marker("a", {}, finished=True)}
    (job,) = place(asked("a"), there, [], goes_on=True)
    assert (job.folder, job.finished, job.again) == ("7", False, False)


def test_names_of_folders_that_are_no_numbers() -> None:
    jobs = [Asked("k=1", "a", OLD), Asked("k=1", "b", OLD)]
    assert [job.folder for job in place(jobs, {}, ["k=1-2"])] == ["k=1", "k=1-3"]


@given(
    st.lists(st.tuples(settings, sources), max_size=6),
    st.lists(markers, max_size=6),
    st.booleans(),
)
def test_no_folder_twice_and_nothing_finished_is_run_over(
    jobs: list[tuple[str, dict[str, str | None]]], there: list[Marker | None], goes_on: bool
) -> None:
    standing = {str(number): marker for number, marker in enumerate(there)}
    wanted = [Asked(str(number), *job) for number, job in enumerate(jobs)]
    found = place(wanted, standing, ["5"], goes_on=goes_on)
    assert len({job.folder for job in found}) == len(found) == len(jobs)
    for job, placed in zip(wanted, found, strict=True):
        old = standing.get(placed.folder)
        if placed.folder in standing:
            assert old is not None
            assert old.settings == job.settings
            assert placed.finished == (old.finished and not goes_on)
            if placed.finished:
                assert not changes(old.sources, job.sources)
        else:
            assert placed.folder != "5"
            assert not placed.finished


def test_what_is_not_known_counts_as_changed() -> None:
    assert changes({}, {}) == ()
    assert changes(OLD, OLD) == ()
    assert changes({"data": None}, {"data": None}) == ("data",)
    assert changes({"data": "1", "model": "2"}, {"data": "1"}) == ("model",)
