//! The library itself: found, opened, and asked for its exported functions by name and version.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};

use crate::{HEADERS, fi_fabric_attr, fi_info, fid_fabric, parts, version};

/// What the library is called where the system's loader looks.
const NAME: &str = "libfabric.so.1";

/// Structs of `fi_info` as these headers lay them out carry this symbol version.
const INFO_VERSION: &CStr = match HEADERS {
    0..0x1_0014 => c"FABRIC_1.3",
    0x1_0014..0x2_0000 => c"FABRIC_1.7",
    _ => c"FABRIC_1.8",
};

type GetInfo = unsafe extern "C" fn(
    version: u32,
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *const fi_info,
    info: *mut *mut fi_info,
) -> c_int;
type FreeInfo = unsafe extern "C" fn(info: *mut fi_info);
type DupInfo = unsafe extern "C" fn(info: *const fi_info) -> *mut fi_info;
type Fabric =
    unsafe extern "C" fn(attr: *mut fi_fabric_attr, fabric: *mut *mut fid_fabric, context: *mut c_void) -> c_int;
type StrError = unsafe extern "C" fn(errnum: c_int) -> *const c_char;
type Version = unsafe extern "C" fn() -> u32;
type ToStr = unsafe extern "C" fn(data: *const c_void, datatype: c_int) -> *mut c_char;

/// Why the library cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The loader did not find or could not open it.
    #[error("{name} cannot be loaded ({reason})")]
    Missing {
        /// What was asked for.
        name: String,
        /// The loader's words.
        reason: String,
    },
    /// It lacks a function in the version that the headers need.
    #[error(
        "{name} has no {symbol} of version {version}: it is older than the headers (libfabric {}.{}) this was built with",
        parts(HEADERS).0,
        parts(HEADERS).1
    )]
    Version {
        /// What was loaded.
        name: String,
        /// The function.
        symbol: String,
        /// The symbol version asked for.
        version: String,
    },
    /// The path is no C string.
    #[error("{0:?} is no path")]
    Path(PathBuf),
}

/// The exported functions. The library stays loaded for as long as the process lives.
#[allow(missing_docs, reason = "each is what its manual page says")]
#[derive(Clone, Copy, Debug)]
pub struct Library {
    pub fi_getinfo: GetInfo,
    pub fi_freeinfo: FreeInfo,
    pub fi_dupinfo: DupInfo,
    pub fi_fabric: Fabric,
    pub fi_strerror: StrError,
    pub fi_version: Version,
    pub fi_tostr: ToStr,
}

impl Library {
    /// Opens the library at `path`, or where the system's loader finds it.
    ///
    /// # Errors
    /// If it is not there, or lacks a function in the version the headers need.
    ///
    /// # Safety
    /// The file is a libfabric: its constructors run, and its symbols are trusted to be what their names say.
    pub unsafe fn load(path: Option<&Path>) -> Result<Library, LoadError> {
        let name = path.unwrap_or(Path::new(NAME));
        let text = CString::new(name.as_os_str().as_encoded_bytes()).map_err(|_| LoadError::Path(name.to_owned()))?;
        // SAFETY: a C string; what the file's constructors do is the caller's promise.
        let handle = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(LoadError::Missing { name: name.display().to_string(), reason: loader_error() });
        }
        let symbol = |symbol: &CStr, version: &CStr| -> Result<*mut c_void, LoadError> {
            // SAFETY: the handle was just opened and is never closed; both are C strings.
            let found = unsafe { libc::dlvsym(handle, symbol.as_ptr(), version.as_ptr()) };
            if found.is_null() {
                return Err(LoadError::Version {
                    name: name.display().to_string(),
                    symbol: symbol.to_string_lossy().into_owned(),
                    version: version.to_string_lossy().into_owned(),
                });
            }
            Ok(found)
        };
        macro_rules! load {
            ($name:literal, $version:expr, $type:ty) => {{
                let found = symbol($name, $version)?;
                // SAFETY: the symbol is a function of this type, as the headers of this version declare it.
                unsafe { std::mem::transmute::<*mut c_void, $type>(found) }
            }};
        }
        Ok(Library {
            fi_getinfo: load!(c"fi_getinfo", INFO_VERSION, GetInfo),
            fi_freeinfo: load!(c"fi_freeinfo", INFO_VERSION, FreeInfo),
            fi_dupinfo: load!(c"fi_dupinfo", INFO_VERSION, DupInfo),
            fi_fabric: load!(c"fi_fabric", c"FABRIC_1.1", Fabric),
            fi_strerror: load!(c"fi_strerror", c"FABRIC_1.0", StrError),
            fi_version: load!(c"fi_version", c"FABRIC_1.0", Version),
            fi_tostr: load!(c"fi_tostr", c"FABRIC_1.0", ToStr),
        })
    }

    /// The interface version to ask for: the headers', or the library's if that is older.
    #[must_use]
    pub fn interface(&self) -> u32 {
        // SAFETY: it takes nothing and only returns a number.
        let library = unsafe { (self.fi_version)() };
        library.min(HEADERS).max(version(1, 5))
    }
}

fn loader_error() -> String {
    // SAFETY: dlerror gives a C string or null, valid until this thread's next call of the loader.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no reason given".into();
    }
    // SAFETY: not null, and a C string as above.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
