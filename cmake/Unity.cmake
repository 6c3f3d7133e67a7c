# With SLUICE_UNITY the compiler reads several files of a library at once, and so their headers once. 24 files at a time took
# 12 % less than 8 in base, device, store, tokenizer and model (g++ 12). `make build` turns it on in a fresh directory. A
# changed file then costs its neighbours too, two files of a library with the same private name may meet, and an include
# that is missing does not show; so it is off by default, as in `make test` of a fresh clone and in CI's tests, which compile
# each file of a library alone.
option(SLUICE_UNITY "Compile several files of a library at once" OFF)

# Files whose private names repeat from file to file (rows of a table: the same functions in each), that are the products' inner
# loops, or that a test puts another one in the place of, are compiled alone all the same. Commands and functions of `sluice lab`
# repeat names, too; each keeps them in a namespace of its own.
set(SLUICE_ALONE "/src/model/arch_|/src/kernels/|/src/codec/|/src/base/machine/cpu_features")

function(sluice_unite target)
  if(NOT SLUICE_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 24)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    if(source MATCHES "${SLUICE_ALONE}")
      set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()

# The test files of one directory are compiled at once; where there are many, those whose names begin alike (a to c, d to k, l to
# r, s to z). Eight at a time took half of the CPU time of one at a time. Private names that meet are kept apart by a namespace
# that is named after the file. SLUICE_UNITE_TESTS=OFF, as in the preset debug, compiles each file alone.
option(SLUICE_UNITE_TESTS "Compile the test files of a directory at once" ON)
set(SLUICE_MANY_TESTS 16)

function(sluice_unite_tests target)
  if(NOT SLUICE_UNITE_TESTS)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    get_filename_component(directory ${source} DIRECTORY)
    file(RELATIVE_PATH directory ${PROJECT_SOURCE_DIR} ${directory})
    string(REPLACE "/" "_" group ${directory})
    list(APPEND ${group} ${source})
    list(APPEND groups ${group})
  endforeach()
  list(REMOVE_DUPLICATES groups)
  foreach(group ${groups})
    list(LENGTH ${group} count)
    foreach(source ${${group}})
      set(part "")
      if(count GREATER SLUICE_MANY_TESTS)
        foreach(letters a-c d-k l-r s-z)
          if(source MATCHES "/[${letters}][^/]*$")
            set(part _${letters})
          endif()
        endforeach()
      endif()
      set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${group}${part})
    endforeach()
  endforeach()
endfunction()
