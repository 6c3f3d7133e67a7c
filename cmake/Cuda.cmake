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

# Kernels give the host's bits: every product and sum is rounded by itself, divisions and roots are IEEE's, subnormal
# numbers stay. tools/check_ptx.py looks whether that is what the compiler made.
string(APPEND CMAKE_CUDA_FLAGS
       " -fmad=false -prec-div=true -prec-sqrt=true -ftz=false --expt-relaxed-constexpr -Xcompiler -ffp-contract=off")
find_package(Python3 COMPONENTS Interpreter)
if(SLUICE_TESTS AND Python3_FOUND)
  file(GLOB SLUICE_KERNEL_FILES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/gpu/cuda/*_cuda.cu)
  add_test(NAME gpu.ptx COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/check_ptx.py
                                ${CMAKE_CUDA_COMPILER} "${CMAKE_CUDA_FLAGS}" ${PROJECT_SOURCE_DIR}/src
                                ${SLUICE_KERNEL_FILES})
  set_tests_properties(gpu.ptx PROPERTIES TIMEOUT 1200 LABELS kernels)
endif()
