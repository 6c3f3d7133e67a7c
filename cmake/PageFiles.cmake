# Makes the files of src/serve/page a part of the library sluice_serve: its bytes, as they are and compressed, are
# taken into the program by .incbin. page_files() (src/serve/page/page_files.h) lists them.
function(sluice_embed_page target)
  set(folder ${PROJECT_SOURCE_DIR}/src/serve/page)
  set(out ${CMAKE_BINARY_DIR}/page)
  file(GLOB files CONFIGURE_DEPENDS ${folder}/*.html ${folder}/*.js ${folder}/*.css ${folder}/*.svg ${folder}/*.ico
                                    ${folder}/*.png)
  find_program(SLUICE_GZIP gzip REQUIRED)
  set(bytes "")
  set(declarations "")
  set(rows "")
  set(packed "")
  foreach(file ${files})
    get_filename_component(name ${file} NAME)
    string(MAKE_C_IDENTIFIER "sluice_page_${name}" symbol)
    add_custom_command(OUTPUT ${out}/${name}.gz
      COMMAND ${CMAKE_COMMAND} -E make_directory ${out}
      COMMAND ${SLUICE_GZIP} -9nc ${file} > ${out}/${name}.gz
      DEPENDS ${file} VERBATIM)
    list(APPEND packed ${out}/${name}.gz)
    string(APPEND bytes "    \".global ${symbol}, ${symbol}_end\\n${symbol}:\\n.incbin \\\"${out}/${name}.gz\\\"\\n${symbol}_end:\\n\"\n")
    string(APPEND bytes "    \".global ${symbol}_plain, ${symbol}_plain_end\\n${symbol}_plain:\\n.incbin \\\"${file}\\\"\\n${symbol}_plain_end:\\n\"\n")
    string(APPEND declarations "extern const char ${symbol}[], ${symbol}_end[], ${symbol}_plain[], ${symbol}_plain_end[];\n")
    string(APPEND rows "      {\"${name}\", {${symbol}, static_cast<std::size_t>(${symbol}_end - ${symbol})},\n")
    string(APPEND rows "       {${symbol}_plain, static_cast<std::size_t>(${symbol}_plain_end - ${symbol}_plain)}},\n")
  endforeach()
  if(files)
    set(section "asm(\".pushsection .rodata\\n\"\n${bytes}    \".popsection\\n\");\nextern \"C\" {\n${declarations}}\n")
    set(body "  static const sluice::serve::PageFile files[] = {\n${rows}  };\n  return files;\n")
  else()
    set(section "")
    set(body "  return {};\n")
  endif()
  file(CONFIGURE OUTPUT ${out}/page_files.cc @ONLY CONTENT
"#include \"serve/page/page_files.h\"

#include <cstddef>

${section}
std::span<const sluice::serve::PageFile> sluice::serve::page_files() {
${body}}
")
  set_source_files_properties(${out}/page_files.cc PROPERTIES OBJECT_DEPENDS "${packed};${files}"
                                                              SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${out}/page_files.cc)
endfunction()
