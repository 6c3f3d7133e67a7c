// Writes the directories of the tiny golden models; the build runs it before tests that read them.
//   write_golden_models SOURCE OUT NAME…
// makes OUT anew with OUT/NAME from SOURCE/NAME.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "golden_writer/checkpoint_files.h"

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: write_golden_models SOURCE OUT NAME...\n");
    return 2;
  }
  try {
    const std::string source = argv[1], out = argv[2];
    std::filesystem::remove_all(out);
    for (int i = 3; i < argc; ++i)
      sluice::golden::write_checkpoint(source + "/" + argv[i], out + "/" + argv[i]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_golden_models: %s\n", error.what());
    return 1;
  }
  return 0;
}
