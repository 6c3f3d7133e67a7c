# With SLUICE_UNITY the compiler reads several files of a library at once, and so their headers once. 24 files at a time took
# 12 % less than 8 in base, device, store, tokenizer and model (g++ 12). `make build` turns it on in a fresh directory. A
# changed file then costs its neighbours too, two files of a library with the same private name may meet, and an include
# that is missing does not show; so it is off by default, as in `make test` of a fresh clone and in CI's tests, which compile
# each file alone.
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
