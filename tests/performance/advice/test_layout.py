"""Room on the grid: nothing overlaps, shapes stay, as few as possible move."""

from hypothesis import given
from hypothesis import strategies as st

from buda_emu.performance.advice.layout import Layout, cells


def layout(rows, columns, **places):
    return Layout((rows, columns), places)


def test_free_cores_are_taken_where_they_are():
    found = layout(2, 3, a=(0, 0, 1, 1), b=(1, 0, 1, 1)).room_for("a", 1, 2)
    assert found == {"a": (0, 0, 1, 2)}


def test_others_move_out_of_the_way():
    full = layout(2, 2, a=(0, 0, 1, 1), b=(0, 1, 1, 1), c=(1, 1, 1, 1))
    assert full.free == {(1, 0)}
    assert full.room_for("a", 1, 2) is not None
    assert full.room_for("a", 2, 2) is None
    assert full.room_for("a", 3, 1) is None


@given(st.data())
def test_nothing_overlaps_and_shapes_stay(data):
    rows, columns = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    places, taken = {}, set()
    for number in range(data.draw(st.integers(1, 8))):
        place = (
            data.draw(st.integers(0, rows - 1)),
            data.draw(st.integers(0, columns - 1)),
            data.draw(st.integers(1, 2)),
            data.draw(st.integers(1, 2)),
        )
        inside = place[0] + place[2] <= rows and place[1] + place[3] <= columns
        if inside and taken.isdisjoint(cells(place)):
            places[f"op{number}"] = place
            taken |= cells(place)
    if not places:
        return
    size = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    name = next(iter(places))
    found = Layout((rows, columns), places).room_for(name, *size)
    if found is None:
        return
    after = {**places, **found}
    assert found[name][2:] == size
    assert all(after[other][2:] == places[other][2:] for other in places if other != name)
    covered = [cell for place in after.values() for cell in cells(place)]
    assert len(covered) == len(set(covered))
    assert all(0 <= row < rows and 0 <= column < columns for row, column in covered)
