//! A program that can be run, whatever carried it here: static Rust, a library, the JIT, or the interpreter.

use std::any::Any;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use pipec_abi::export::{Program, run_static};
use pipec_abi::external::Extern;
use pipec_abi::meta::Meta;
use pipec_abi::table::{Hot, Table};
use pipec_abi::{Burst, Ctx, Env, RunFn};

use crate::env::WorkerEnv;
use crate::offline::Heap;
use crate::tables::{Reader, Tables};

/// An engine that is called with its `Env`: the reference interpreter.
pub trait Interpret: Send + Sync {
    /// Runs all packets of a burst to their ends.
    fn run(&self, env: &mut dyn Env, ctx: &mut Ctx, burst: &mut Burst);
}

/// A program with the means to run it. Cheap to clone; code is freed with the last.
#[derive(Clone)]
pub struct Engine {
    meta: Arc<Meta>,
    /// Its tables, built once and shared by workers.
    tables: Arc<[Arc<Table>]>,
    /// What each worker samples of their traffic.
    hot: Arc<[Option<Hot>]>,
    /// Its actions in Rust.
    externs: Arc<[Extern]>,
    code: Code,
    /// Tables that were given to it, for whoever changes them while it runs.
    given: Option<Arc<Tables>>,
    /// Who else keeps code alive.
    _keeps: Option<Arc<Engine>>,
}

#[derive(Clone)]
enum Code {
    /// A function that finds its `Env` in the context, and who keeps its code alive.
    Function {
        run: RunFn,
        _owner: Option<Arc<dyn Any + Send + Sync>>,
    },
    /// Static Rust, made for each `Env` there is.
    Static {
        heap: RunFn,
        #[cfg(feature = "dpdk")]
        mbuf: RunFn,
    },
    Interpreter(Arc<dyn Interpret>),
}

impl Engine {
    /// A program in static Rust.
    ///
    /// # Errors
    /// When its description cannot be read.
    pub fn of<P: Program>() -> Result<Engine, serde_json::Error> {
        let code = Code::Static {
            heap: run_static::<P, WorkerEnv<Heap>>,
            #[cfg(feature = "dpdk")]
            mbuf: run_static::<P, WorkerEnv<crate::io::dpdk::Mbufs>>,
        };
        Ok(Engine {
            meta: Arc::new(Meta::parse(P::META)?),
            tables: build(P::TABLES),
            hot: hot(P::TABLES),
            externs: P::EXTERNS.into(),
            code,
            given: None,
            _keeps: None,
        })
    }

    /// Code that finds its `Env` in the context, with its tables as bytes; `owner` keeps the code alive.
    pub fn function<T: AsRef<[u8]>>(
        meta: Meta,
        tables: &[T],
        run: RunFn,
        owner: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Engine {
        Engine { hot: hot(tables), ..Engine::carried(meta, tables, Code::Function { run, _owner: owner }) }
    }

    /// An interpreter, with its tables as bytes.
    pub fn interpreter<T: AsRef<[u8]>>(meta: Meta, tables: &[T], interpreter: Arc<dyn Interpret>) -> Engine {
        Engine::carried(meta, tables, Code::Interpreter(interpreter))
    }

    /// A program without actions in Rust. Nothing is sampled: interpreters look every packet up by itself.
    fn carried<T: AsRef<[u8]>>(meta: Meta, tables: &[T], code: Code) -> Engine {
        Engine {
            meta: Arc::new(meta),
            tables: build(tables),
            hot: Arc::new([]),
            externs: Arc::new([]),
            code,
            given: None,
            _keeps: None,
        }
    }

    /// The program with its actions in Rust, in the order in which it declares them. Without them it drops what meets one.
    #[must_use]
    pub fn with_externs(self, externs: &[Extern]) -> Engine {
        Engine { externs: externs.into(), ..self }
    }

    /// The program with the actions in Rust of another carrier of it.
    #[must_use]
    pub fn with_externs_of(self, other: &Engine) -> Engine {
        Engine { externs: other.externs.clone(), _keeps: Some(Arc::new(other.clone())), ..self }
    }

    /// The program with these tables, made for it by [`Tables::new`]: whoever runs it takes them, so that they can be changed
    /// meanwhile. Without, each run begins with tables of its own.
    #[must_use]
    pub fn with_tables(self, tables: &Arc<Tables>) -> Engine {
        Engine { given: Some(tables.clone()), ..self }
    }

    /// Tables that were given to it.
    pub(crate) fn given_tables(&self) -> Option<&Arc<Tables>> {
        self.given.as_ref()
    }

    /// What the program is, to be shared.
    pub(crate) fn shared_meta(&self) -> Arc<Meta> {
        self.meta.clone()
    }

    /// Its tables, with the entries that it brings along.
    pub(crate) fn tables(&self) -> &[Arc<Table>] {
        &self.tables
    }

    /// What the program is.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Makes a context with this `Env`, and what runs the program in it.
    ///
    /// # Safety
    /// The `Env` must stay where it is, alone to the runner whenever that runs, for as long as the runner lives.
    pub unsafe fn runner<B: crate::env::Buffers + Kind>(&self, env: *mut WorkerEnv<B>) -> Runner {
        // SAFETY: promised by the caller; nothing else uses the `Env` now.
        let tables = unsafe { (*env).tables().clone() };
        let (reader, root, entry_counters) = Reader::new(&tables);
        let (counters, vars) = (self.meta.counters.len(), self.meta.vars as usize);
        let ctx = Ctx::new(counters, vars, root, entry_counters).with_scratch(self.meta.scratch as usize);
        let ctx = ctx.with_hot(self.hot.iter().cloned().collect());
        let mut ctx = Box::new(ctx);
        ctx.set_externs(self.externs.clone());
        // SAFETY: promised by the caller.
        unsafe { ctx.attach(env) };
        let call = match &self.code {
            Code::Function { run, .. } => Call::Function(*run),
            #[cfg(feature = "dpdk")]
            Code::Static { mbuf, .. } if B::MBUF => Call::Function(*mbuf),
            Code::Static { heap, .. } => Call::Function(*heap),
            Code::Interpreter(interpreter) => Call::Interpreter(interpreter.clone(), env as *mut (dyn Env + 'static)),
        };
        Runner { ctx, call, reader, _engine: self.clone() }
    }
}

/// Builds tables, under a key that nobody can know.
fn build<T: AsRef<[u8]>>(tables: &[T]) -> Arc<[Arc<Table>]> {
    let seed = RandomState::new().hash_one(tables.len());
    tables.iter().map(|bytes| Arc::new(Table::decode(bytes.as_ref(), seed))).collect()
}

/// What is sampled of tables whose look-ups are dear.
fn hot<T: AsRef<[u8]>>(tables: &[T]) -> Arc<[Option<Hot>]> {
    tables.iter().map(|bytes| Hot::of(bytes.as_ref())).collect()
}

/// Which kind of packets an `Env` holds, so that static code made for it is taken.
pub trait Kind: 'static {
    /// Whether they are DPDK's.
    const MBUF: bool;
}

/// A program in one worker: its code and its context.
pub struct Runner {
    ctx: Box<Ctx>,
    call: Call,
    reader: Reader,
    _engine: Engine,
}

enum Call {
    Function(RunFn),
    Interpreter(Arc<dyn Interpret>, *mut dyn Env),
}

// SAFETY: the context and the `Env` belong to one worker and move to its thread together.
unsafe impl Send for Runner {}

impl Runner {
    /// Runs the program over a burst.
    #[inline(always)]
    pub fn run(&mut self, burst: &mut Burst, entry: u16) {
        self.reader.begin(&mut self.ctx);
        match &self.call {
            // SAFETY: the context has the `Env` attached that `runner` was promised, and sizes from the description.
            Call::Function(run) => unsafe { run(&mut *self.ctx, burst, entry) },
            Call::Interpreter(interpreter, env) => {
                // SAFETY: `runner` was promised that the `Env` lives and is alone to this run.
                let env = unsafe { &mut **env };
                interpreter.run(env, &mut self.ctx, burst);
            }
        }
    }

    /// No burst will come for a while: nobody waits for this worker then.
    pub fn rest(&mut self) {
        self.reader.rest();
    }

    /// The context, for its counters.
    pub fn ctx(&mut self) -> &mut Ctx {
        &mut self.ctx
    }
}
