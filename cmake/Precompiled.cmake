# Headers of the standard library, fmt and GoogleTest that most files read are parsed once: reading them is most of
# what compiling a file costs. Every file still names what it uses; SLUICE_PCH=OFF, as in the preset debug and so in
# `make lint`, finds an include that is missing.
option(SLUICE_PCH "Precompile the headers of other projects" ON)

# A header costs each file something even when it is precompiled: the compiler makes anew what the header's inline
# functions need of templates (<filesystem> 60 ms a file, <random> 15, <thread> 10). So a header stands
# here if (files that read it) x (what reading it costs) is more than (all files) x (what it costs precompiled).
set(SLUICE_PCH_HEADERS <algorithm> <array> <chrono> <cmath> <condition_variable> <cstdint> <cstring> <functional>
                       <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <string> <string_view>
                       <thread> <tuple> <utility> <vector> <fmt/format.h>)
set(SLUICE_PCH_TEST_HEADERS <fstream> <sstream> <gtest/gtest.h> <gmock/gmock.h>)

# The target's files get the precompiled headers of its kind: LIBRARY, or RARE and TEST for code that runs seldom
# and for test programs, which have other compile options. The first target of a kind compiles them, the others use its file. A
# target with compile options of its own cannot use them, and neither can single files that have some (those of
# one instruction set): these say SKIP_PRECOMPILE_HEADERS.
function(sluice_precompile target kind)
  if(NOT SLUICE_PCH)
    return()
  endif()
  get_property(first GLOBAL PROPERTY SLUICE_PCH_${kind})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    set(headers ${SLUICE_PCH_HEADERS})
    if(kind STREQUAL TEST)
      list(APPEND headers ${SLUICE_PCH_TEST_HEADERS})
    endif()
    target_precompile_headers(${target} PRIVATE ${headers})
    set_property(GLOBAL PROPERTY SLUICE_PCH_${kind} ${target})
  endif()
endfunction()
