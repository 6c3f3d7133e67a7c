// The tokenizer of a checkpoint: of a packed store the one that was compiled into it, if there is one.
#pragma once

#include <memory>
#include <string>

#include "model/tokenizer.h"
#include "store/checkpoint.h"

namespace sluice::model {

// Null if the model comes without one. A compiled tokenizer of another version of this program, or of another
// store, is passed over, and the files of the model are read; so is a damaged one, and `warning`, if it is
// not null, then says so. Error as load_tokenizer(); as load_compiled_tokenizer() of one that nothing can
// replace.
std::unique_ptr<Tokenizer> load_tokenizer_of(const store::Checkpoint& checkpoint,
                                             std::string* warning = nullptr);

// Reads the tokenizer among the files of the packed store and writes it into it, compiled. False if there is
// none. Error as load_tokenizer().
bool compile_tokenizer_of(const store::Checkpoint& checkpoint);

}  // namespace sluice::model
