# sluice_discover_tests(TARGET PREFIX LABEL TIMEOUT SUITES...) makes each test of a program a test of ctest, which
# runs it in a process of its own. The suites that are named have a fixture that takes longer than their tests (a calibration,
# say): each of them is one test of ctest and one process, so that the fixture is computed once.
set(SLUICE_TEST_ENVIRONMENT "SLUICE_GUARD_DEVICE=1")  # an emulated device's memory is kept from host code (device/emulated/arena.h)
function(sluice_discover_tests target prefix label timeout)
  set(filter "")
  foreach(suite ${ARGN})
    add_test(NAME ${prefix}${suite} COMMAND ${target} --gtest_filter=${suite}.*)
    set_tests_properties(${prefix}${suite} PROPERTIES TIMEOUT ${timeout} LABELS ${label}
                         ENVIRONMENT "${SLUICE_TEST_ENVIRONMENT}" FAIL_REGULAR_EXPRESSION "Running 0 tests")
    list(APPEND filter "${suite}.*")
  endforeach()
  if(filter)
    list(JOIN filter ":" filter)
    set(filter TEST_FILTER "-${filter}")
  endif()
  gtest_discover_tests(${target} TEST_PREFIX ${prefix} ${filter} DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT ${timeout} LABELS ${label} ENVIRONMENT "${SLUICE_TEST_ENVIRONMENT}")
endfunction()
