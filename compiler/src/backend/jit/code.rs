//! Who owns compiled code.

use std::mem::ManuallyDrop;

use cranelift_codegen::settings::{self, Configurable};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, ModuleError, default_libcall_names};
use pipec_abi::reshape::Stack;
use pipec_abi::{CtPoint, RunFn};

/// Why a plan could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Cranelift has no back end for this processor.
    #[error("the JIT does not know this processor ({0}); use `--engine rust`")]
    Machine(String),
    /// A setting or a function was refused: a fault of ours.
    #[error("the JIT's code generator refused the program: {0}; this is a defect of pipec, please report it")]
    Refused(String),
}

impl From<ModuleError> for Error {
    fn from(error: ModuleError) -> Error {
        Error::Refused(format!("{error:?}"))
    }
}

impl From<settings::SetError> for Error {
    fn from(error: settings::SetError) -> Error {
        Error::Refused(error.to_string())
    }
}

/// A module for this machine, with nothing in it.
pub fn new_module() -> Result<JITModule, Error> {
    let mut flags = settings::builder();
    flags.set("use_colocated_libcalls", "false")?;
    flags.set("is_pic", "false")?;
    flags.set("opt_level", "speed")?;
    flags.set("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" })?;
    let isa = cranelift_native::builder()
        .map_err(|m| Error::Machine(m.to_owned()))?
        .finish(settings::Flags::new(flags))
        .map_err(|e| Error::Refused(e.to_string()))?;
    Ok(JITModule::new(JITBuilder::with_isa(isa, default_libcall_names())))
}

/// A program's machine code, and the constants it points at. Freed on drop.
pub struct Jit {
    module: ManuallyDrop<JITModule>,
    run: RunFn,
    _constants: Constants,
}

/// What code points at.
pub type Constants = (Box<[CtPoint]>, Box<[Stack]>, Box<[Box<[u64]>]>);

// SAFETY: after `finalize_definitions` the module is only held to be freed; its code is immutable.
unsafe impl Send for Jit {}
// SAFETY: the same.
unsafe impl Sync for Jit {}

impl Jit {
    /// Takes a module whose definitions are final; `entry` has the signature of a [`RunFn`].
    pub(super) fn new(module: JITModule, entry: FuncId, constants: Constants) -> Jit {
        let code = module.get_finalized_function(entry);
        // SAFETY: `entry` was built with the signature of `RunFn` (`entry::signature`).
        let run = unsafe { std::mem::transmute::<*const u8, RunFn>(code) };
        Jit { module: ManuallyDrop::new(module), run, _constants: constants }
    }

    /// The entry. Valid for as long as this lives.
    pub fn run(&self) -> RunFn {
        self.run
    }
}

impl Drop for Jit {
    fn drop(&mut self) {
        // SAFETY: taken once, here; nothing uses the field afterwards.
        let module = unsafe { ManuallyDrop::take(&mut self.module) };
        // SAFETY: whoever runs the code holds this (engines keep it alive), so nobody runs it now.
        unsafe { module.free_memory() };
    }
}
