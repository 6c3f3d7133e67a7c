# ccache compiles what it has seen before in no time: another branch, a build directory made anew.
option(SLUICE_CCACHE "Use ccache where it is installed" ON)
if(SLUICE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(SLUICE_CCACHE_PROGRAM ccache)
  mark_as_advanced(SLUICE_CCACHE_PROGRAM)
  if(SLUICE_CCACHE_PROGRAM)
    # Precompiled headers want both of these of ccache.
    set(CMAKE_CXX_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
        ${SLUICE_CCACHE_PROGRAM})
  endif()
endif()
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES ccache AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)  # ccache passes files over without it
endif()
