# sluice_folder(NAME DEPS a b LIBS x::y) makes the library sluice_NAME from every src/NAME/**/*.cc:
#   x.cc            compiled for the baseline
#   x_avx2.cc …     compiled with that instruction set (see SLUICE_ISA_FLAGS_*); x_neon.cc only where ARM is at home
#   x_cuda.cc/.cu   only with SLUICE_CUDA; the x_none.cc beside it only without
#   x_lockstep.cc   code of GPUs compiled for the CPU: for tests alone, in the library sluice_lockstep
#   x_test.cc       goes to the test program test_NAME (one program per folder)
#   x_bench.cc, x_fuzz.cc  belong to bench/ and tests/fuzz
# RARE says that its code runs seldom, or waits for others: it is optimised less (sluice_optimise_less).
# A new file needs no line anywhere; a test cannot be forgotten.
add_library(sluice_options INTERFACE)
target_include_directories(sluice_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(sluice_options INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-fno-math-errno;-ffp-contract=off>")
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(sluice_options INTERFACE -Wno-restrict)  # reports std::string = "…" falsely (GCC bug 105329)
endif()
if(SLUICE_WERROR)
  target_compile_options(sluice_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(SLUICE_SANITIZE)
  target_compile_options(sluice_options INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${SLUICE_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>")
  target_link_options(sluice_options INTERFACE -fsanitize=${SLUICE_SANITIZE})
endif()
if(SLUICE_TESTS)
  # What a test program has beside these: its own code is compiled more often than run, so it is hardly optimised.
  add_library(sluice_test_options INTERFACE)
  target_link_libraries(sluice_test_options INTERFACE GTest::gmock GTest::gtest_main)
  target_compile_definitions(sluice_test_options INTERFACE SLUICE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(SLUICE_SANITIZE)
    target_compile_options(sluice_test_options INTERFACE -O0)
  else()
    target_compile_options(sluice_test_options INTERFACE $<$<CONFIG:Release>:-O1>)
  endif()
endif()

set(SLUICE_X86 OFF)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(SLUICE_X86 ON)
  target_compile_options(sluice_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=x86-64-v2>)
endif()
set(SLUICE_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c -mbmi2)
set(SLUICE_ISA_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c -mavx2 -mbmi2)
set(SLUICE_ISA_FLAGS_avx512vnni ${SLUICE_ISA_FLAGS_avx512} -mavx512vnni)
set(SLUICE_ISA_FLAGS_amxint8 ${SLUICE_ISA_FLAGS_avx512vnni} -mamx-tile -mamx-int8)
set(SLUICE_ISA_FLAGS_avx512vbmi2 ${SLUICE_ISA_FLAGS_avx512} -mavx512vbmi -mavx512vbmi2)
set(SLUICE_ISA_FLAGS_avx512bf16 ${SLUICE_ISA_FLAGS_avx512vbmi2} -mavx512bf16)
set(SLUICE_ISA_FLAGS_amx ${SLUICE_ISA_FLAGS_avx512vbmi2} -mamx-tile -mamx-bf16)
set(SLUICE_ISA_FLAGS_neon)  # part of the base architecture
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # Scheduling before registers are given out loads what comes later early, until registers run out: GCC 12
  # kept 77 of 196 instructions of the 1 x 6 product's loop busy with the stack, 10 of 127 without.
  list(APPEND SLUICE_ISA_FLAGS_neon -fno-schedule-insns)
endif()

# Keeps from each pair x_none.cc and x_cuda.cc (or x_cuda.cu) in `variable` the file that this build needs.
function(sluice_choose_device_files variable)
  set(files ${${variable}})
  foreach(cuda_file ${files})
    if(cuda_file MATCHES "^(.*)_cuda\\.c[cu]$")
      if(SLUICE_CUDA)
        list(REMOVE_ITEM files ${CMAKE_MATCH_1}_none.cc)
      else()
        list(REMOVE_ITEM files ${cuda_file})
      endif()
    endif()
  endforeach()
  set(${variable} ${files} PARENT_SCOPE)
endfunction()

# A target whose code is compiled more often than it is run hot: short to build, and small, because the program's
# code is part of every budget (docs/memory.md). Inlining only what is tiny makes it a quarter smaller.
function(sluice_optimise_less target)
  target_compile_options(${target} PRIVATE
    "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>"
    "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANG_AND_ID:CXX,GNU>>:--param=max-inline-insns-single=10>")
  sluice_precompile(${target} RARE)
endfunction()

function(sluice_folder name)
  cmake_parse_arguments(ARG "RARE" "" "DEPS;LIBS" ${ARGN})
  set(dir ${PROJECT_SOURCE_DIR}/src/${name})
  file(GLOB_RECURSE all CONFIGURE_DEPENDS ${dir}/*.cc ${dir}/*.cu)
  set(sources ${all})
  list(FILTER sources EXCLUDE REGEX "_(test|bench|fuzz|lockstep)\\.cc$")
  sluice_choose_device_files(sources)
  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  foreach(isa avx2 avx512 avx512vnni avx512vbmi2 avx512bf16 amx amxint8)
    set(isa_sources ${sources})
    list(FILTER isa_sources INCLUDE REGEX "_${isa}\\.cc$")
    if(SLUICE_X86)
      set_source_files_properties(${isa_sources} PROPERTIES COMPILE_OPTIONS "${SLUICE_ISA_FLAGS_${isa}}"
                                                            SKIP_PRECOMPILE_HEADERS ON)
    else()
      list(FILTER sources EXCLUDE REGEX "_${isa}\\.cc$")
    endif()
  endforeach()
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|ARM64")
    set(isa_sources ${sources})
    list(FILTER isa_sources INCLUDE REGEX "_neon\\.cc$")
    set_source_files_properties(${isa_sources} PROPERTIES COMPILE_OPTIONS "${SLUICE_ISA_FLAGS_neon}"
                                                          SKIP_PRECOMPILE_HEADERS ON)
  else()
    list(FILTER sources EXCLUDE REGEX "_neon\\.cc$")
  endif()
  list(TRANSFORM ARG_DEPS PREPEND sluice_)
  add_library(sluice_${name} STATIC ${sources})
  target_link_libraries(sluice_${name} PUBLIC sluice_options ${ARG_DEPS} ${ARG_LIBS})
  sluice_unite(sluice_${name})
  if(ARG_RARE)
    sluice_optimise_less(sluice_${name})
  else()
    sluice_precompile(sluice_${name} LIBRARY)
  endif()
  if(sources MATCHES "_cuda\\.c[cu]")
    target_link_libraries(sluice_${name} PRIVATE CUDA::cudart_static)
  endif()
  if(SLUICE_TESTS AND tests)
    add_executable(test_${name} ${tests})
    target_link_libraries(test_${name} PRIVATE sluice_${name} sluice_test_options)
    sluice_precompile(test_${name} TEST)
    sluice_unite_tests(test_${name})
    sluice_discover_tests(test_${name} ${name}. ${name} 600 ${SLUICE_WHOLE_SUITES_${name}})
  endif()
endfunction()
