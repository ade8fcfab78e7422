import Foundation
/// An order.
@MainActor
public final class Order: Base, Codable {
  public static let limit = 10
  @Published private(set) var items: [Line] = []
  var total: Double { items.reduce(0) { $0 + $1.price } }
  var name: String = "" { didSet { print(name) } }
  lazy var cache: Cache = { Cache() }()
  required init(id: Int) { super.init() }
  convenience init?(raw: String) { return nil }
  deinit { }
  subscript(i: Int) -> Line { get { items[i] } }
  override func save() async throws -> Bool { true }
  static func == (a: Order, b: Order) -> Bool { true }
  class func make() -> Self { fatalError() }
  @discardableResult func add<T: Line>(_ l: T) -> Int where T: Equatable { 1 }
  enum Status: String, CaseIterable { case new, paid(at: Date); var isFinal: Bool { true } }
  struct Key: Hashable { let v: Int }
}
protocol Repo: AnyObject { associatedtype T; func find(id: Int) -> T?; var count: Int { get } }
extension Order: Repo { func find(id: Int) -> Line? { nil } }
extension Array where Element: Line { func sum() -> Double { 0 } }
public indirect enum Tree<T> { case leaf; case node(Tree, T, Tree) }
actor Counter { private var n = 0; func bump() { n += 1 } }
infix operator **: MultiplicationPrecedence
func ** (a: Double, b: Double) -> Double { pow(a, b) }
func topLevel(_ x: Int = 1, with y: inout String) rethrows {}
typealias Handler = (Int) -> Void
@propertyWrapper struct Clamped { var wrappedValue: Int }
@main struct App { static func main() {} }
struct ContentView: View { var body: some View { VStack { Text("x") } } }
#if DEBUG
func debugOnly() {}
#endif
macro stringify<T>(_ v: T) -> (T, String) = #externalMacro(module: "M", type: "S")
