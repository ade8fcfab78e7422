//! Orders crate.
use std::fmt;
/// Status.
#[derive(Debug, Clone)]
#[serde(rename_all = "snake_case")]
pub enum Status { New, Paid { at: u64 }, Failed(String) }
pub struct Unit;
pub struct Wrapper<T>(pub T);
pub type Res<T> = Result<T, Error>;
const MAX: usize = 10;
static GLOBAL: AtomicUsize = AtomicUsize::new(0);
pub trait Repo<T>: Send where T: Clone {
    type Item;
    const N: usize = 1;
    fn find(&self, id: u64) -> Option<T>;
    fn all(&self) -> Vec<T> { vec![] }
}
impl<T> Repo<T> for Wrapper<T> where T: Clone {
    type Item = T;
    fn find(&self, id: u64) -> Option<T> { None }
}
impl<'a, T: fmt::Display> fmt::Display for Wrapper<&'a T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { Ok(()) }
}
impl Status {
    pub const ZERO: u8 = 0;
    /// Is it final?
    #[inline]
    pub async fn is_final(&self) -> bool { matches!(self, Self::Paid { .. }) }
}
impl dyn Repo<u8> { fn dynamic(&self) {} }
impl<T> From<T> for Box<dyn Error> { fn from(t: T) -> Self { todo!() } }
#[macro_export]
macro_rules! order {
    ($id:expr) => { Order::new($id) };
}
mod inner {
    pub(crate) fn helper() {}
    pub mod deep { pub fn down() {} }
}
extern "C" { fn c_call(x: i32) -> i32; }
#[no_mangle]
pub unsafe extern "C" fn exported() {}
pub union U { a: u32, b: f32 }
lazy_static! { static ref X: u8 = 1; }
#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn works() { assert!(true); }
    #[tokio::test]
    async fn works_async() {}
}
fn main() { fn nested() {} nested(); }
