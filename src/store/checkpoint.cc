#include "store/checkpoint.h"

#include "store/directory_checkpoint.h"
#include "store/store_checkpoint.h"

namespace sluice::store {

std::unique_ptr<Checkpoint> open_checkpoint(const std::string& path) {
  return looks_like_store(path) ? open_store_checkpoint(path) : open_directory(path);
}

}  // namespace sluice::store
