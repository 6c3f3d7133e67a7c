# SLUICE_CUDA=ON: finds the toolkit, also where nvcc is not on PATH. The runtime is linked statically, so that the same
# program starts on a machine without a GPU or a driver.
if(NOT SLUICE_CUDA)
  return()
endif()
find_package(CUDAToolkit 12 REQUIRED)
if(NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 75 80 86 89 90)  # Turing to Hopper; later GPUs run the PTX of the last
endif()
enable_language(CUDA)
# CMake 3.25 does not know how to ask nvcc 13 for C++20.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
