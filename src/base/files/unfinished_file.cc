#include "base/files/unfinished_file.h"

#include <unistd.h>

namespace sluice {

UnfinishedFile::~UnfinishedFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

}  // namespace sluice
