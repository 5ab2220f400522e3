# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whose blocks there are, and where in a slab each lies: size classes and object caches.

A block has an owner, whose name is what people know it by. A slab's owner is its size class, or
the object cache that has it.
"""

from dataclasses import dataclass

import numpy as np

from terrace.debug.layout import Layout, UmemLayout, filled
from terrace.debug.memory import Memory
from terrace.debug.objects import ObjectClasses
from terrace.debug.umem.caches import Cache, CacheReader, LargeObjects


@dataclass(frozen=True)
class Owner:
    """Whose blocks they are. `size` is 0 where each block has its own."""

    name: str
    size: int
    size_class: int  # 0: large blocks
    is_aligned: bool = False
    cache: int = 0  # the address of the object cache; 0: blocks are malloc's
    is_handle: bool = False  # a block that stands for a free object that is no such block


LARGE = Owner("large", 0, 0)


@dataclass(frozen=True)
class Shape:
    """Where in a slab blocks lie: src/heap/classes/placement.h."""

    stride: int
    per_group: int
    group_bytes: int
    blocks: int
    granules: int


class Classes:
    """Size classes, home classes and shapes, and those of object caches: a home class each."""

    def __init__(self, layout: Layout, memory: Memory, umem: UmemLayout | None = None) -> None:
        self.count = layout.constant("class.count")
        self.homes = layout.constant("home.count")
        self.first_magazine = layout.constant("home.first_magazine")
        self.page_value_of_objects = layout.constant("home.objects")
        self.kinds = layout.constant("magazine.kinds")
        self.objects = ObjectClasses(layout, memory)
        sizes = memory.array(layout.address("class_sizes"), self.count, "<u4")
        self.sizes: list[int] = sizes.tolist()
        of_home = memory.array(layout.address("classes_of_homes"), 256, "u1")
        self.of_home: list[int] = of_home.tolist()
        plain = layout.constant("class.plain")
        self.owners = {0: LARGE} | {
            c: Owner(
                f"{self.sizes[c]}{' aligned' if c > plain else ''}", self.sizes[c], c, c > plain
            )
            for c in range(1, self.count)
        }
        size = layout.field("shape").size
        table = layout.of_heap(memory, "slabs.shapes")
        self._layout, self._memory = layout, memory
        of_class = {c: self._shape(table + c * size) for c in range(1, self.count)}
        magazines = layout.address("magazine_shapes")
        self.shapes: list[Shape | None] = [None] * self.objects.first
        for home in range(1, 256):
            c = self.of_home[home]
            if 0 < c < self.count and home < self.homes:
                self.shapes[home] = of_class[c]
        for kind in range(self.kinds):
            self.shapes[self.first_magazine + kind] = self._shape(magazines + kind * size)
        self._add_objects(umem)
        self.homes_apart: dict[int, int] = {}  # by the cache's address
        self.large = LargeObjects(umem, memory) if umem is not None else None
        self._index()
        for cache in self.large.caches if self.large is not None else ():
            self.add_apart(cache)

    def _index(self) -> None:
        self.class_of_home = np.array(self.of_home, np.int64)
        self.size_of_home = np.array(
            [self.owners[c].size if c in self.owners else 0 for c in self.of_home], np.int64
        )

    def _add_objects(self, umem: UmemLayout | None) -> None:
        """A cache's objects have its name, and the length that it was created with."""
        objects = self.objects
        caches = CacheReader(umem, self._memory) if umem is not None else None
        names = objects.shapes.dtype.names
        for number, owner in enumerate(objects.rows["owner"].tolist()):
            home = objects.first + number
            self.of_home.append(home)
            if not objects.is_sound(number):
                self.shapes.append(None)
                continue
            row = objects.shapes[number].tolist()
            shape = filled(Shape, dict(zip(names or (), row, strict=True)))
            self.shapes.append(shape)
            cache = caches.at(owner) if caches is not None and owner else None
            name = cache.name if cache is not None else f"cache {owner:#x}"
            size = cache.size if cache is not None and cache.size <= shape.stride else shape.stride
            is_handle = cache is not None and cache.has_handles
            if is_handle:
                name, size = f"handles of {name}", shape.stride
            self.owners[home] = Owner(name, size, home, cache=owner, is_handle=is_handle)

    def add_apart(self, cache: Cache) -> None:
        """No home class has such objects: they get one that is only known here."""
        home = self.homes_apart[cache.address] = len(self.shapes)
        self.of_home.append(home)
        self.shapes.append(None)
        self.owners[home] = Owner(cache.name, cache.size, home, cache=cache.address)
        self._index()

    def _shape(self, address: int) -> Shape:
        found = self._layout.read(self._memory, "shape", address)
        if not self.objects.can_be(found):
            raise ValueError(f"a shape of slabs that can not be at {address:#x}")
        return filled(Shape, found)

    def is_magazine(self, home: int) -> bool:
        return self.first_magazine <= home < self.first_magazine + self.kinds
