// The tokenizer of a checkpoint: of its files, or of the keys of a GGUF file. For a packed store: the
// tokenizer that was compiled into it, if it has one.
#pragma once

#include <memory>
#include <string>

#include "base/stop_request.h"
#include "store/checkpoint.h"
#include "tokenizer/tokenizer.h"

namespace sluice::tokenizer {

// Null if the model has no tokenizer. A compiled tokenizer of another store is ignored, and the files of the
// model are read. So are they where it is damaged, of another version of this program, or cannot be read;
// then `warning`, if not null, says so. Errors as load_tokenizer(); that of the compiled tokenizer if
// nothing can replace it.
std::unique_ptr<Tokenizer> load_tokenizer_of(const store::Checkpoint& checkpoint,
                                             std::string* warning = nullptr);

// Compiles the tokenizer among the files of the packed store and writes it into the store. False if there is
// none. Errors as load_tokenizer().
bool compile_tokenizer_of(const store::Checkpoint& checkpoint, const StopRequest& stop = {});

}  // namespace sluice::tokenizer
