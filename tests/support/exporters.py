"""Arrays of other libraries, as their protocols show them: of the host, and of a pretended GPU."""

import types

import numpy as np

ON_GPU = 2  # kDLCUDA


class Exporter:
    """A host array that only DLPack exports, as one of the array API may be."""

    def __init__(self, array, device=1):
        self.array, self.device = np.asarray(array), device

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device, 0


class OnDevice:
    """An array of a GPU: what it holds is known to the `cupy` below alone."""

    def __init__(self, array):
        self.array = np.asarray(array)

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.array.shape, "typestr": self.array.dtype.str, "data": (0, True),
                "version": 3}  # fmt: skip


class DeviceArray(np.ndarray):
    """What the pretended CuPy makes: NumPy's array, with the interface and `get` of CuPy."""

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (0, True), "version": 3}

    def get(self):
        return np.array(self)


def as_if_of_gpu(source):
    """A `DeviceArray` of what an `OnDevice` or an `Exporter` of a GPU holds."""
    return np.array(source.array).view(DeviceArray)


def pretended_cupy():
    return types.SimpleNamespace(asarray=as_if_of_gpu, from_dlpack=as_if_of_gpu)


def pretended_gpu():
    """As much of a backend as chooses where arrays go."""
    return types.SimpleNamespace(name="gpu", device=types.SimpleNamespace(xp=pretended_cupy()))
